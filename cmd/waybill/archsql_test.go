package main

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

var (
	sqlComment = regexp.MustCompile(`(?m)--.*$`)
	sqlStar    = regexp.MustCompile(`(?is)\bselect\s+(?:distinct\s+)?\*\s*(?:from\s+(\w+)([.(]?))?`)
	sqlCTE     = regexp.MustCompile(`(?is)(?:\bwith|\brecursive|,)\s+(\w+)\s*(?:\([^)]*\)\s*)?as\s+(?:not\s+)?(?:materialized\s+)?\(`)
)

// checkSQL finds statements that promise nothing, and stars over tables.
func checkSQL(t *testing.T, tree fs.FS) (found []string) {
	t.Helper()
	for _, name := range filesOf(t, tree, ".sql") {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			found = append(found, name+" opens with no comment")
		}
		if star := starOverTable(string(text)); star != "" {
			found = append(found, name+": "+star)
		}
	}
	return found
}

// starOverTable returns the first star that is not over unnest or the file's own
// CTE, whose columns stand in the same file.
func starOverTable(text string) string {
	text = sqlComment.ReplaceAllString(text, "")
	own := map[string]bool{}
	for _, m := range sqlCTE.FindAllStringSubmatch(text, -1) {
		own[m[1]] = true
	}
	for _, m := range sqlStar.FindAllStringSubmatch(text, -1) {
		unnested := strings.EqualFold(m[1], "unnest") && m[2] == "("
		if !unnested && (!own[m[1]] || m[2] == ".") {
			return strings.Join(strings.Fields(m[0]), " ")
		}
	}
	return ""
}
