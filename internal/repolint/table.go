package repolint

import "strings"

// cells is one row of a Markdown table, with the line it is on.
type cells struct {
	line int
	text []string
}

// tableRows returns the rows of all tables of a document, without their headings. Backquotes are left off.
func tableRows(doc string) []cells {
	var rows []cells
	inTable := false
	for i, line := range strings.Split(doc, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		var text []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			text = append(text, strings.Trim(strings.TrimSpace(c), "`"))
		}
		if strings.Trim(text[0], "-: ") == "" {
			inTable = true // the line below the heading
		} else if inTable {
			rows = append(rows, cells{i + 1, text})
		}
	}
	return rows
}
