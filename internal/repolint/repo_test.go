package repolint

import (
	"os"
	"testing"
)

// TestRepositoryKeepsItsRules applies every rule to the repository itself.
func TestRepositoryKeepsItsRules(t *testing.T) {
	repo, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatalf("reading the repository: %v", err)
	}
	if len(repo.gofiles) == 0 || repo.texts["go.mod"] == "" {
		t.Fatal("the folder two above is not the repository; run this test with go test")
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			fs := r.check(repo)
			for _, f := range fs {
				t.Error(f)
			}
			if len(fs) > 0 {
				t.Logf("the reason for this rule: %s", r.why)
			}
		})
	}
}
