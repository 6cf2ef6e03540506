package moonpath_test

import (
	"os"
	"strings"
	"testing"
)

// documented returns the rows of the table in a document whose heading begins with these columns, by the id in the
// first one, and the ids in order.
func documented(t *testing.T, path string, columns ...string) (rows map[string][]string, ids []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows = make(map[string][]string)
	heading := "| " + strings.Join(columns, " | ") + " |"
	inTable := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == heading:
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "| ---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
			}
			if len(cells) != len(columns) || rows[cells[0]] != nil {
				t.Fatalf("%s: the row %q has other columns than its heading, or an id that was there before", path, line)
			}
			rows[cells[0]] = cells
			ids = append(ids, cells[0])
		}
	}
	if len(ids) == 0 {
		t.Fatalf("%s has no table with the heading %q", path, heading)
	}
	return rows, ids
}
