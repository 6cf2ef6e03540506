package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryCommandIsExplained: an example in the help, every flag with a help text, a section in the reference.
func TestEveryCommandIsExplained(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var line commandLine
	for _, command := range newParser(&line).Model.Leaves(false) {
		if !strings.Contains(command.Detail, "    moonpath "+command.Name) {
			t.Errorf("the help of %s has no example", command.Name)
		}
		section, found := cutSection(string(reference), "## moonpath "+command.Name+"\n")
		if !found {
			t.Errorf("docs/reference/cli.md has no section about %s", command.Name)
		}
		for _, f := range command.Flags {
			if f.Help == "" {
				t.Errorf("%s --%s has no help", command.Name, f.Name)
			}
			if !strings.Contains(section, "`--"+f.Name) {
				t.Errorf("docs/reference/cli.md says nothing about %s --%s", command.Name, f.Name)
			}
		}
	}
}

func cutSection(text, heading string) (section string, found bool) {
	_, rest, found := strings.Cut(text, heading)
	section, _, _ = strings.Cut(rest, "\n## ")
	return section, found
}

func TestExitCodesAreDocumented(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitCodes {
		if row := "| " + strings.TrimSpace(e.label()) + " | " + e.meaning + " |"; !strings.Contains(string(reference), row) {
			t.Errorf("docs/reference/cli.md lacks %q", row)
		}
		if !strings.Contains(description(), e.label()+"  "+e.meaning) {
			t.Errorf("the help lacks exit code %d", e.code)
		}
	}
}

// TestJSONShapesAreDocumented: every key of what --json prints is in the reference.
func TestJSONShapesAreDocumented(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		readyLine{}, transferResult{}, benchResult{}, latencies{}, demoResult{}, demoStep{}, demoBatch{}, infoView{}, warningView{},
		segmentView{}, tcpView{}, bufferView{}, moonpathView{}, probeResult{}, notifyResult{}, versionView{}, failure{}, runView{}, eventView{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key != "" && !strings.Contains(string(reference), `"`+key+`"`) {
				t.Errorf("docs/reference/cli.md lacks %q of %T", key, v)
			}
		}
	}
}
