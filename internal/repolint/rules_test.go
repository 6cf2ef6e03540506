package repolint

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// plant makes a tree of the given files.
func plant(t *testing.T, files map[string]string) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for p, text := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(text)}
	}
	tr, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// planted is a tree and the findings that a rule must make in it, each "path:line" with a piece of its text.
type planted struct {
	name  string
	files map[string]string
	want  []string
}

// oneFile is a tree of one file.
func oneFile(path, text string) map[string]string { return map[string]string{path: text} }

// expect applies the rule of that name to each tree.
func expect(t *testing.T, ruleName string, trees []planted) {
	t.Helper()
	var found, clean bool
	for _, p := range trees {
		found = found || len(p.want) > 0
		clean = clean || len(p.want) == 0
		t.Run(p.name, func(t *testing.T) {
			var have []string
			for _, f := range ruleNamed(t, ruleName).check(plant(t, p.files)) {
				have = append(have, f.String())
			}
			if len(have) != len(p.want) {
				t.Fatalf("findings %q, want %q", have, p.want)
			}
			for i, w := range p.want {
				place, text, _ := strings.Cut(w, " ")
				if !strings.HasPrefix(have[i], place+": ") || !strings.Contains(have[i], text) {
					t.Errorf("finding %q, want one at %s with %q", have[i], place, text)
				}
			}
		})
	}
	if !found || !clean {
		t.Error("a rule needs a tree that it objects to, and one that it does not")
	}
}

func ruleNamed(t *testing.T, name string) rule {
	t.Helper()
	for _, r := range rules {
		if r.name == name {
			return r
		}
	}
	t.Fatalf("there is no rule %q", name)
	return rule{}
}

func TestEveryRuleHasANameAndAReason(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		if r.name == "" || len(r.why) < 20 || seen[r.name] {
			t.Errorf("rule %q: its name must be its own, and its reason %q a sentence", r.name, r.why)
		}
		seen[r.name] = true
	}
}

func TestLoadLeavesOutWhatIsBuilt(t *testing.T) {
	tr := plant(t, map[string]string{
		"a.go": "package a\n", "bin/x.go": "package", "build/y.go": "package", ".git/z.go": "package",
		"a/testdata/bad.go": "no Go at all", "a/blob": "x\x00y", "a/a.test": "x", ".ci/run": "#!/bin/sh\n",
	})
	if len(tr.gofiles) != 1 {
		t.Errorf("%d Go files, want 1", len(tr.gofiles))
	}
	if d := cmp.Diff([]string{".ci/run", "a.go", "a/testdata/bad.go"}, tr.paths()); d != "" {
		t.Errorf("texts (-want +have):\n%s", d)
	}
}

func TestLoadNamesTheFileThatDoesNotParse(t *testing.T) {
	_, err := load(fstest.MapFS{"a/bad.go": {Data: []byte("package a\nfunc {\n")}})
	if err == nil || !strings.Contains(err.Error(), "a/bad.go:2") {
		t.Errorf("error %v, want one at a/bad.go:2", err)
	}
}

// imports is a file of the package pkg that imports paths, one a line from line 3 on.
func imports(pkg string, paths ...string) string {
	s := "package " + pkg + "\n\n"
	for _, p := range paths {
		s += "import _ \"" + p + "\"\n"
	}
	return s
}

func TestLayering(t *testing.T) {
	expect(t, "layering", []planted{
		{"downwards", map[string]string{
			"moonpath.go": imports("moonpath", modulePath+"/multi", modulePath+"/transport/all", modulePath+"/xfer"),
			"multi/m.go":  imports("multi", modulePath+"/selector", modulePath+"/transport"), "mem/m.go": imports("mem", modulePath+"/xfer", "golang.org/x/sys/unix"),
			"cmd/moonpath/main.go": imports("main", modulePath), "transport/all/all.go": imports("all", modulePath+"/transport/tcp"),
		}, nil},
		{"upwards", oneFile("transport/t.go", imports("transport", modulePath+"/mem", modulePath+"/multi")), []string{"transport/t.go:4 (row 3) imports multi (row 5)"}},
		{"up to the facade", oneFile("multi/m.go", imports("multi", modulePath)), []string{"multi/m.go:3 imports . (row 6)"}},
		{"sideways", oneFile("segment/s.go", imports("segment", modulePath+"/mem")), []string{"segment/s.go:3 segment (row 2) imports mem (row 2)"}},
		{"one transport to another", oneFile("transport/tcp/t.go", imports("tcp", modulePath+"/transport/local")), []string{"transport/tcp/t.go:3 row 4"}},
		{"to a test kit from a test", oneFile("transport/tcp/t_test.go", imports("tcp", modulePath+"/transport/transporttest")), nil},
		{"to a test kit from the code", oneFile("transport/tcp/t.go", imports("tcp", modulePath+"/transport/transporttest")), []string{"transport/tcp/t.go:3 row 4"}},
		{"an edge of the table", oneFile("wire/segjson/s.go", imports("segjson", modulePath+"/wire/jsoncpp")), nil},
		{"the reverse of it", oneFile("wire/jsoncpp/s.go", imports("jsoncpp", modulePath+"/wire/segjson")), []string{"wire/jsoncpp/s.go:3 row 1"}},
		{"an edge for tests", oneFile("wire/segjson/s_test.go", imports("segjson", modulePath+"/wire/ctrlframe")), nil},
		{"an edge for tests in the code", oneFile("wire/segjson/s.go", imports("segjson", modulePath+"/wire/ctrlframe")), []string{"wire/segjson/s.go:3 row 1"}},
		{"its own test package", oneFile("mem/m_test.go", imports("mem_test", modulePath+"/mem")), nil},
		{"what a row keeps internal", oneFile("wire/tcpframe/f_test.go", imports("tcpframe", modulePath+"/wire/internal/vectors")), nil},
		{"what another row keeps internal", oneFile("obs/o.go", imports("obs", modulePath+"/wire/internal/vectors")), []string{"obs/o.go:3 row 1"}},
		{"inside interop", oneFile("interop/i_test.go", imports("interop", modulePath+"/interop/cxx")), nil},
		{"from interop to a tool", oneFile("interop/i_test.go", imports("interop", modulePath+"/tools/yardstick")), []string{"interop/i_test.go:3 row 7"}},
		{"the vocabulary leaves the standard library", oneFile("xfer/x.go", imports("xfer", "errors", "golang.org/x/sys/unix")), []string{"xfer/x.go:4 standard library only"}},
		{"a folder nobody placed", oneFile("util/u.go", imports("util")), []string{"util/u.go:1 in no row"}},
		{"an import nobody placed", oneFile("multi/m.go", imports("multi", modulePath+"/util")), []string{"multi/m.go:3 in no row"}},
	})
}

func TestPackageDocs(t *testing.T) {
	expect(t, "doc.go", []planted{
		{"there", map[string]string{"mem/doc.go": "// Package mem holds.\npackage mem\n", "mem/m.go": "package mem\n", "doc.go": "// Package moonpath moves.\npackage moonpath\n"}, nil},
		{"a command", map[string]string{"tools/x/doc.go": "// Command x does.\npackage main\n"}, nil},
		{"a command by its name", oneFile("cmd/moonpath/doc.go", "// Moonpath is the tool.\npackage main\n"), nil},
		{"a command by another's", oneFile("tools/x/doc.go", "// Command y does.\npackage main\n"), []string{"tools/x/doc.go:2 Command x"}},
		{"missing", oneFile("mem/m.go", "// Package mem holds.\npackage mem\n"), []string{"mem/doc.go missing"}},
		{"missing in a folder of tests", oneFile("mem/m_test.go", "package mem\n"), []string{"mem/doc.go missing"}},
		{"without a comment", oneFile("mem/doc.go", "package mem\n"), []string{"mem/doc.go:1 Package mem"}},
		{"with another's comment", oneFile("mem/doc.go", "// Package men holds.\npackage mem\n"), []string{"mem/doc.go:2 Package mem"}},
	})
}

func TestExportedComments(t *testing.T) {
	expect(t, "exported comments", []planted{
		{"good", oneFile("mem/m.go", `package mem

// F does.
func F() {}

// A T is.
type T struct{}

// M does.
func (t *T) M() {}

// Codes of errors.
const (
	A = 1
	B = 2
)

var V int // V counts.

func (u *unexported) M() {}

func (t *T) String() string { return "" }

type unexported struct{}

func f() {}
`), nil},
		{"bad", oneFile("mem/m.go", `package mem

func String() {}

// Does something.
type T struct{}

func (t *T) M() {}

func (g G[K]) M() {}

const A = 1

var (
	V int
)

// Types.
type (
	G[K any] struct{}
)
`), []string{"mem/m.go:3 String ", "mem/m.go:6 T ", "mem/m.go:8 M ", "mem/m.go:10 M ", "mem/m.go:12 A ", "mem/m.go:15 V ", "mem/m.go:20 G "}},
		{"tests and commands are not imported", map[string]string{"mem/m_test.go": "package mem\n\nfunc F() {}\n", "cmd/x/main.go": "package main\n\nfunc F() {}\n"}, nil},
	})
}

func TestEnvironment(t *testing.T) {
	read := "package p\n\nimport \"os\"\n\nvar v = os.Getenv(\"X\")\n"
	environ := "package p\n\nimport \"os\"\n\nvar v = os.Environ()\n"
	expect(t, "environment", []planted{
		{"config", oneFile("config/c.go", read), nil},
		{"elsewhere", oneFile("mem/m.go", read), []string{"mem/m.go:5 os.Getenv"}},
		{"a command", oneFile("cmd/moonpath/m.go", read), []string{"cmd/moonpath/m.go:5 os.Getenv"}},
		{"a test", oneFile("mem/m_test.go", read), []string{"mem/m_test.go:5 os.Getenv"}},
		{"under another name", oneFile("mem/m.go", "package p\n\nimport env \"os\"\n\nvar v, _ = env.LookupEnv(\"X\")\n"), []string{"mem/m.go:5 os.LookupEnv"}},
		{"as a value", oneFile("mem/m.go", "package p\n\nimport \"syscall\"\n\nvar v = syscall.Getenv\n"), []string{"mem/m.go:5 syscall.Getenv"}},
		{"the whole of it", oneFile("mem/m.go", environ), []string{"mem/m.go:5 os.Environ"}},
		{"for a child", map[string]string{"cmd/moonpath/m.go": environ, "tools/x/m.go": environ, "interop/i.go": environ, "mem/m_test.go": environ}, nil},
		{"another package's Getenv", oneFile("mem/m.go", "package p\n\nimport \"x/fake\"\n\nvar v = fake.Getenv(\"X\")\n"), nil},
	})
}

func TestSleepInTests(t *testing.T) {
	expect(t, "sleep in tests", []planted{
		{"asleep", oneFile("mem/m_test.go", "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"), []string{"mem/m_test.go:5 time.Sleep"}},
		{"not a test", oneFile("mem/m.go", "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"), nil},
		{"in and after a bubble", oneFile("mem/m_test.go", `package p

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1)
	})
	time.Sleep(1)
}
`), []string{"mem/m_test.go:13 time.Sleep"}},
	})
}

func TestRawAtomics(t *testing.T) {
	src := func(expr string) string {
		return "package p\n\nimport \"sync/atomic\"\n\nvar n uint64\n\nvar v = " + expr + "\n"
	}
	expect(t, "raw atomics", []planted{
		{"typed", oneFile("mem2/m.go", src("new(atomic.Uint64).Add(1)")), nil},
		{"a pointer type", oneFile("obs/m.go", src("atomic.Pointer[int]{}")), nil},
		{"raw", oneFile("obs/m.go", src("atomic.AddUint64(&n, 1)")), []string{"obs/m.go:7 atomic.AddUint64"}},
		{"raw, another", oneFile("obs/m.go", src("atomic.CompareAndSwapUint64(&n, 1, 2)")), []string{"obs/m.go:7 atomic.CompareAndSwapUint64"}},
		{"on mapped memory", oneFile("internal/sysx/m.go", src("atomic.AddUint64(&n, 1)")), nil},
	})
}

func TestUnsafe(t *testing.T) {
	src := imports("p", "unsafe")
	expect(t, "unsafe", []planted{
		{"where it may be", map[string]string{"mem/m.go": src, "internal/sysx/s.go": src, "internal/ffi/ibv/i.go": src, "tools/x/x.go": src}, nil},
		{"elsewhere", oneFile("transport/tcp/t.go", src), []string{"transport/tcp/t.go:3 unsafe"}},
		{"in a test", oneFile("multi/m_test.go", src), []string{"multi/m_test.go:3 unsafe"}},
		{"a neighbour with a similar name", oneFile("memory/m.go", src), []string{"memory/m.go:3 unsafe"}},
	})
}

func TestHotFiles(t *testing.T) {
	expect(t, "hot files", []planted{
		{"fmt in a hot file", oneFile("multi/m.go", "//moonpath:hot\npackage p\n\nimport \"fmt\"\n\nvar _ = fmt.Sprint\n"), []string{"multi/m.go:4 fmt"}},
		{"a marker with an explanation", oneFile("multi/m.go", "package p\n\n//moonpath:hot every request passes here\n\nimport _ \"fmt\"\n"), []string{"multi/m.go:5 fmt"}},
		{"a cold file", oneFile("multi/m.go", imports("p", "fmt")), nil},
		{"a hot file without fmt", oneFile("multi/m.go", "//moonpath:hot\npackage p\n\nimport _ \"errors\"\n"), nil},
	})
}

func TestGoroutines(t *testing.T) {
	src := "package p\n\nfunc f() { go f() }\n"
	expect(t, "goroutines", []planted{
		{"an owner", oneFile("multi/m.go", "//moonpath:goroutines\n"+src), nil},
		{"nobody's", oneFile("multi/m.go", src), []string{"multi/m.go:3 go statement"}},
		{"by a method", oneFile("multi/m.go", "package p\n\nimport \"sync\"\n\nvar wg sync.WaitGroup\n\nfunc f() { wg.Go(f) }\n"), []string{"multi/m.go:7 Go method"}},
		{"tests and commands", map[string]string{"multi/m_test.go": src, "cmd/x/m.go": src, "tools/x/m.go": src, "interop/i.go": src}, nil},
	})
}

func TestMarkers(t *testing.T) {
	expect(t, "markers", []planted{
		{"right", oneFile("multi/m.go", "//moonpath:hot\n\n//moonpath:goroutines one a lane\npackage p\n"), nil},
		{"with a space", oneFile("multi/m.go", "// moonpath:hot\npackage p\n"), []string{"multi/m.go:1 no marker"}},
		{"a sentence", oneFile("multi/m.go", "// moonpath: a word about it.\npackage p\n"), nil},
		{"misspelled", oneFile("multi/m.go", "//moonpath:goroutine\npackage p\n"), []string{"multi/m.go:1 no marker"}},
	})
}

func TestAllocationTests(t *testing.T) {
	src := "package p\n\nfunc TestAllocsNothing() {}\n"
	expect(t, "allocation tests", []planted{
		{"left out under the race detector", oneFile("obs/o_test.go", "//go:build linux && !race\n\n"+src), nil},
		{"not left out", oneFile("obs/o_test.go", src), []string{"obs/o_test.go:3 TestAllocsNothing"}},
		{"only with it", oneFile("obs/o_test.go", "//go:build race\n\n"+src), []string{"obs/o_test.go:5 TestAllocsNothing"}},
		{"with or without it", oneFile("obs/o_test.go", "//go:build !race || linux\n\n"+src), []string{"obs/o_test.go:5 TestAllocsNothing"}},
	})
}

func TestNoReplace(t *testing.T) {
	expect(t, "go.mod", []planted{
		{"none", oneFile("go.mod", "module m\n\nrequire a/replace v1.0.0 // replace later\n"), nil},
		{"a line", oneFile("go.mod", "module m\n\nreplace a => ../a\n"), []string{"go.mod:3 replace"}},
		{"a block", oneFile("tools/lint.mod", "module m\n\nreplace (\n\ta => ../a\n)\n"), []string{"tools/lint.mod:3 replace"}},
	})
}

func TestMachinePaths(t *testing.T) {
	for i, word := range machinePaths {
		expect(t, "machine paths", []planted{
			{"a path", oneFile("docs/a.md", "fine\nsee "+word+"x\n"), []string{"docs/a.md:2 leave it out"}},
			{"none", oneFile("docs/a.md", "see "+machinePaths[i][1:len(word)-1]+"\n"), nil},
		})
	}
	if len(machinePaths) == 0 {
		t.Error("no word is forbidden")
	}
}

func TestLinks(t *testing.T) {
	pages := func(link string) map[string]string {
		return map[string]string{"docs/a.md": "fine\nsee [it](" + link + ").\n", "docs/adr/0001-x.md": "x", "README.md": "x"}
	}
	expect(t, "links", []planted{
		{"to a file", pages("adr/0001-x.md"), nil},
		{"to a part of a file above", pages("../README.md#status"), nil},
		{"to a folder", pages("adr"), nil},
		{"to this page", pages("#top"), nil},
		{"away", pages("https://example.com/nothing"), nil},
		{"to nothing", pages("adr/0002-y.md"), []string{"docs/a.md:2 adr/0002-y.md does not exist"}},
		{"from the wrong folder", pages("README.md"), []string{"docs/a.md:2 README.md does not exist"}},
	})
}

func TestLicence(t *testing.T) {
	expect(t, "licence", []planted{
		{"whole", oneFile("LICENSE", "Apache License\nVersion 2.0, January 2004\nEND OF TERMS AND CONDITIONS\n"), nil},
		{"missing", oneFile("README.md", "x"), []string{"LICENSE missing"}},
		{"another", oneFile("LICENSE", "MIT License\n"), []string{"LICENSE not the whole"}},
	})
}

func TestRequirements(t *testing.T) {
	table := func(rows string) string { return "| id | demand | state | test |\n| --- | --- | --- | --- |\n" + rows }
	test := "package p\n\nfunc TestR_TCP_2_SocketsAreBounded() {}\n"
	with := func(rows string) map[string]string {
		return map[string]string{requirementsPath: table(rows), "multi/m_test.go": test}
	}
	expect(t, "requirements", []planted{
		{"done with its test", with("| R-TCP-2 | bounded | done | `TestR_TCP_2_SocketsAreBounded` |\n"), nil},
		{"in work, the test is there already", with("| R-TCP-2 | bounded | in work | |\n"), nil},
		{"done without a test", oneFile(requirementsPath, table("| R-TCP-2 | bounded | done | `TestR_TCP_2_x` |\n")), []string{requirementsPath + ":3 no test is called TestR_TCP_2_"}},
		{"another's test does not count", with("| R-TCP-2 | bounded | in work | |\n| R-TCP-21 | x | done | `TestR_TCP_21_x` |\n"), []string{requirementsPath + ":4 no test is called TestR_TCP_21_"}},
		{"a name that only begins alike", map[string]string{requirementsPath: table("| R-TCP-2 | bounded | done | `TestR_TCP_2_x` |\n"), "multi/m_test.go": "package p\n\nfunc TestR_TCP_2nd() {}\n"}, []string{requirementsPath + ":3 no test is called TestR_TCP_2_"}},
		{"done without naming the test", with("| R-TCP-2 | bounded | done | |\n"), []string{requirementsPath + ":3 does not name its test"}},
		{"a test for what comes later", with("| R-TCP-2 | bounded | later | TCP |\n"), []string{"multi/m_test.go:3 later"}},
		{"a test for an unknown id", with(""), []string{"multi/m_test.go:3 R-TCP-2"}},
		{"an unknown state", with("| R-TCP-2 | bounded | finished | x |\n"), []string{requirementsPath + ":3 unknown state"}},
		{"twice", with("| R-TCP-2 | bounded | in work | |\n| R-TCP-2 | bounded | in work | |\n"), []string{requirementsPath + ":4 twice"}},
		{"a cell missing", with("| R-TCP-2 | bounded | in work | x |\n| R-OBS-2 | codes | done |\n"), []string{requirementsPath + ":4 3 cells"}},
		{"no table", oneFile("multi/m_test.go", test), []string{requirementsPath + " missing"}},
	})
}

func TestDependencies(t *testing.T) {
	table := func(modules ...string) string {
		s := "| module | why |\n| --- | --- |\n"
		for _, m := range modules {
			s += "| `" + m + "` | because |\n"
		}
		return s
	}
	const mod = "module m\n\nrequire (\n\texample.com/direct v1.0.0\n\texample.com/used v1.0.0 // indirect\n\texample.com/far v1.0.0 // indirect\n)\n"
	const lint = "module l\n\ntool example.com/lint/cmd/lint\n\nrequire example.com/lint v1.0.0 // indirect\n\nrequire example.com/below v1.0.0 // indirect\n"
	with := func(modules ...string) map[string]string {
		return map[string]string{"go.mod": mod, lintModPath: lint, dependenciesPath: table(modules...), "a.go": imports("a", "example.com/used/sub")}
	}
	expect(t, "dependencies", []planted{
		{"all have rows", with("example.com/direct", "example.com/used", "example.com/lint"), nil},
		{"a direct one has none", with("example.com/used", "example.com/lint"), []string{dependenciesPath + " no row for example.com/direct"}},
		{"an imported one has none", with("example.com/direct", "example.com/lint"), []string{dependenciesPath + " no row for example.com/used"}},
		{"a tool has none", with("example.com/direct", "example.com/used"), []string{dependenciesPath + " no row for example.com/lint"}},
		{"a row for nothing", with("example.com/direct", "example.com/used", "example.com/lint", "example.com/gone"), []string{dependenciesPath + ":6 example.com/gone is in no module file"}},
		{"an empty cell", map[string]string{"go.mod": "require a.b/c v1\n", dependenciesPath: "| m | why |\n|---|---|\n| a.b/c | |\n"}, []string{dependenciesPath + ":3 cell 2"}},
		{"no document", oneFile("go.mod", mod), []string{dependenciesPath + " missing"}},
	})
}
