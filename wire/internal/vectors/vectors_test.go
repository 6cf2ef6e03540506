package vectors

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTakesNamedBlocksOnly(t *testing.T) {
	got, err := parse("text 00\n```hex a\n01 0203 # ff\n04\n```\n```sh\n05\n```\n```hex\n06\n```\n```json b\n{} \n```\n")
	want := Set{{"a", []byte{1, 2, 3, 4}}, {"b", []byte("{} \n")}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestParseRefusesWhatWouldTestNothing(t *testing.T) {
	for name, text := range map[string]string{
		"no block":      "00\n",
		"odd digits":    "```hex a\n012\n```\n",
		"no digits":     "```hex a\nxy\n```\n",
		"no end":        "```hex a\n01\n",
		"repeated name": "```hex a\n01\n```\n```hex a\n02\n```\n",
	} {
		if set, err := parse(text); err == nil {
			t.Errorf("%s: got %v, want an error", name, set)
		}
	}
}
