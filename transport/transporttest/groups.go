package transporttest

import "slices"

// group is a part of the contract.
type group struct {
	name  string
	cases []testCase
}

// testCase is one demand. Its name says it in short, demands in a sentence.
type testCase struct {
	name    string
	demands string
	needs   []Capability
	run     func(x *rig)
}

var groups = []group{
	{"identity", identity},
	{"bytes", slices.Concat(sizes(), borders)},
	{"completion", completion},
	{"pressure", pressure},
	{"quiesce", quiescing},
	{"cancel", canceling},
	{"failure", failures},
	{"lifecycle", lifecycle},
	{"honesty", honesty},
	{"load", load},
	{"allocation", allocation()},
	{"explain", explaining},
}
