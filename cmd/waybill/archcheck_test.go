package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "waybill"

// goFile is one parsed file.
type goFile struct {
	path   string
	syntax *ast.File
	files  *token.FileSet
}

func (f goFile) dir() string  { return path.Dir(f.path) }
func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// forTests reports whether the file is a test's, or in a package that tests use.
func (f goFile) forTests() bool { return f.isTest() || strings.HasSuffix(f.dir(), "test") }

func (f goFile) line(p token.Pos) int { return f.files.Position(p).Line }

func (f goFile) say(p token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: ", f.path, f.line(p)) + fmt.Sprintf(format, args...)
}

// checkGo finds what is wrong with a tree's Go files.
func checkGo(t *testing.T, tree fs.FS) (found []string) {
	t.Helper()
	documented := map[string]bool{}
	for _, f := range parseAll(t, tree) {
		found = append(found, checkImports(f)...)
		found = append(found, checkCalls(f)...)
		found = append(found, checkSize(f)...)
		if !f.isTest() {
			found = append(found, checkDocs(f)...)
			documented[f.dir()] = documented[f.dir()] || f.syntax.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			found = append(found, dir+" has no package comment")
		}
	}
	return found
}

func parseAll(t *testing.T, tree fs.FS) (list []goFile) {
	t.Helper()
	for _, name := range filesOf(t, tree, ".go") {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, goFile{name, syntax, files})
	}
	return list
}

// filesOf returns the tree's files of one kind, beside those of testdata and
// dot-folders.
func filesOf(t *testing.T, tree fs.FS, suffix string) (names []string) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		hidden := e != nil && e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata")
		switch {
		case err != nil:
			return err
		case hidden:
			return fs.SkipDir
		case strings.HasSuffix(name, suffix) && !e.IsDir():
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func checkImports(f goFile) (found []string) {
	r, ok := roomOf(f.dir())
	if !ok {
		return []string{f.path + " is in no room"}
	}
	for _, spec := range f.syntax.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if !f.forTests() && !r.admits(name) {
			found = append(found, f.say(spec.Pos(), "must not import %s", name))
		}
	}
	return found
}

// roomOf returns the room that a folder belongs to, under its own name.
func roomOf(dir string) (room, bool) {
	for _, r := range rooms {
		parent, each := strings.CutSuffix(r.dir, "/*")
		below, inside := strings.CutPrefix(dir+"/", parent+"/")
		if !inside || each && below == "" {
			continue
		}
		if first, _, _ := strings.Cut(below, "/"); each {
			r.dir = parent + "/" + first
		}
		return r, true
	}
	return room{}, false
}

// admits reports whether the room's product files may import a package.
func (r room) admits(name string) bool {
	if below(name, "testing") || below(name, "github.com/testcontainers") {
		return false
	}
	if inner, ours := strings.CutPrefix(name, module+"/"); ours {
		allowed := append([]string{r.dir}, r.imports...)
		return !strings.HasSuffix(name, "test") && slices.ContainsFunc(allowed, func(a string) bool { return below(inner, a) })
	}
	if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") {
		return r.modules == nil || slices.Contains(r.modules, name)
	}
	return r.dir != "domain" || !slices.ContainsFunc(impure, func(p string) bool { return below(name, p) })
}

// below reports whether a path is the parent or under it.
func below(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, strings.TrimSuffix(parent, "/")+"/")
}

// checkCalls finds tests that skip, and a domain that reads a clock or draws an id.
func checkCalls(f goFile) (found []string) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on, _ := s.X.(*ast.Ident)
		switch call := s.Sel.Name; {
		case f.forTests() && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, call):
			found = append(found, f.say(s.Pos(), "skips"))
		case on == nil || f.isTest() || !below(f.path, "domain"):
		case on.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}, call):
			found = append(found, f.say(s.Pos(), "reads a clock"))
		case on.Name == "uuid" && strings.HasPrefix(call, "New"):
			found = append(found, f.say(s.Pos(), "draws an id"))
		}
		return true
	})
	return found
}

func checkSize(f goFile) (found []string) {
	if n := f.line(f.syntax.FileEnd); !f.forTests() && n > maxFile {
		found = append(found, fmt.Sprintf("%s: %d lines, at most %d", f.path, n, maxFile))
	}
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > maxFunc {
			found = append(found, f.say(fn.Pos(), "%s has %d lines, at most %d", fn.Name.Name, n, maxFunc))
		}
	}
	return found
}

// checkDocs finds exported names without a comment: their own, or their group's.
func checkDocs(f goFile) (found []string) {
	missing := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		has := slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" })
		if name.IsExported() && !has {
			found = append(found, f.say(name.Pos(), "%s has no comment", name.Name))
		}
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			missing(d.Name, d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					missing(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						missing(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return found
}
