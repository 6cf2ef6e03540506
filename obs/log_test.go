package obs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestHandlerHonoursTheReferencesLevels(t *testing.T) {
	for level, want := range map[string]string{
		"TRACE":   "TRACE DEBUG INFO WARNING ERROR",
		"INFO":    "INFO WARNING ERROR",
		"WARNING": "WARNING ERROR",
		"ERROR":   "ERROR",
	} {
		var out strings.Builder
		handler, err := NewHandler(&out, level)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(handler)
		for _, l := range []slog.Level{LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			log.Log(context.Background(), l, "message", "level", "untouched", "key", "value")
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if !strings.Contains(line, "msg=message level=untouched key=value") {
				t.Errorf("line %q lacks message or attributes", line)
			}
			_, rest, _ := strings.Cut(line, " level=")
			name, _, _ := strings.Cut(rest, " ")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %s lets %q through, want %q", level, got, want)
		}
	}
}

func TestUnknownLevelIsAnErrorThatListsThem(t *testing.T) {
	for _, text := range []string{"", "info", "DEBUG", "INFO "} {
		_, err := NewHandler(nil, text)
		var bad *BadLevel
		if !errors.As(err, &bad) || bad.Text != text || !strings.Contains(err.Error(), "TRACE, INFO, WARNING or ERROR") {
			t.Errorf("NewHandler(%q): %v", text, err)
		}
	}
}
