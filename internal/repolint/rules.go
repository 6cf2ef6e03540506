package repolint

// rule is one rule with the reason that its findings are printed with.
type rule struct {
	name  string
	why   string
	check func(*tree) []finding
}

// rules are all of them; each has a test of its own with planted violations.
var rules = []rule{
	{"layering", "imports go down only, so that a package can be understood, tested and replaced with what is below it; " +
		"a new edge inside a row needs an entry with a reason in layering.go", checkLayering},
	{"doc.go", "every package says in doc.go what it is for, how it fits, its invariants and its goroutines", checkPackageDocs},
	{"exported comments", "an exported symbol is a promise; its comment starts with its name and says what may be relied on", checkExportedComments},
	{"environment", "the environment is read once, in package config, so that every setting is listed and knows its origin; " +
		"commands, tools, interop and tests may pass os.Environ to a child", checkEnvironment},
	{"sleep in tests", "a test that sleeps is slow and still races; wait for an event, or use testing/synctest, " +
		"where sleeping is allowed because its time is not real", checkSleep},
	{"raw atomics", "a plain field that is sometimes reached atomically will one day be reached without; use atomic.Uint64 and " +
		"its kind, which also are aligned everywhere", checkRawAtomics},
	{"unsafe", "only mem, internal/sysx and internal/ffi turn numbers into pointers; everybody else gets iovecs, bytes and copies from them", checkUnsafe},
	{"hot files", "fmt allocates and boxes its arguments; a file marked //moonpath:hot is on the data path, where nothing allocates", checkHotFiles},
	{"goroutines", "whoever starts a goroutine owns its end; a file that does so is marked //moonpath:goroutines and its package lists " +
		"them in doc.go, so that their number stays a function of peers and lanes", checkGoroutines},
	{"markers", "a marker that is spelled wrongly marks nothing", checkMarkers},
	{"allocation tests", "the race detector allocates on its own account, so a file with TestAllocs functions says //go:build !race", checkAllocTests},
	{"go.mod", "a replace line works for us and for nobody who imports the module", checkNoReplace},
	{"machine paths", "a path of one machine means nothing on the next", checkMachinePaths},
	{"links", "a link to a page that is not there sends the reader away", checkLinks},
	{"licence", "without its licence nobody may use the code", checkLicence},
	{"requirements", "docs/compat/requirements.md says which requirement is met, and a test that carries its id proves it", checkRequirements},
	{"dependencies", "every module that we depend on was chosen for a reason, which docs/dependencies.md gives", checkDependencies},
}
