package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// manifestOf is where a file's manifest is.
func manifestOf(file string) string { return file + ".manifest.json" }

// exportFiles are a file and its manifest while they are written, under other names beside
// their places, so that nothing half-written is ever there.
type exportFiles struct{ data, manifest *partFile }

// partFile is a file that is not in its place yet.
type partFile struct {
	*os.File
	out   *bufio.Writer
	place string
}

// newExportFiles refuses a place that is taken: no evidence is ever replaced. A manifest
// without its file is left of an export that was ended just before it was done.
func newExportFiles(place string) (*exportFiles, error) {
	if err := free(place); err != nil {
		return nil, err
	}
	data, err := newPartFile(place)
	if err != nil {
		return nil, err
	}
	manifest, err := newPartFile(manifestOf(place))
	if err != nil {
		return nil, errors.Join(err, data.discard())
	}
	return &exportFiles{data, manifest}, nil
}

func newPartFile(place string) (*partFile, error) {
	f, err := os.CreateTemp(filepath.Dir(place), "."+filepath.Base(place)+".*"+partial)
	if err != nil {
		return nil, err
	}
	return &partFile{f, bufio.NewWriterSize(f, 1<<20), place}, nil
}

// partial ends the names of files that are not whole.
const partial = ".partial"

func free(place string) error {
	_, err := os.Lstat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s exists already; an export is never replaced", place)
	}
	return err
}

// sync brings both to the disk.
func (f *exportFiles) sync() error {
	for _, p := range []*partFile{f.data, f.manifest} {
		if err := errors.Join(p.out.Flush(), p.Sync(), p.Chmod(0o640)); err != nil {
			return err
		}
	}
	return nil
}

// publish puts both in their places, the manifest first: a file that is there is whole and
// has one.
func (f *exportFiles) publish() error {
	if err := free(f.data.place); err != nil {
		return err
	}
	for _, p := range []*partFile{f.manifest, f.data} {
		if err := errors.Join(p.Close(), os.Rename(p.Name(), p.place)); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(f.data.place))
}

// discard removes what was not put in its place.
func (f *exportFiles) discard() {
	_ = errors.Join(f.data.discard(), f.manifest.discard())
}

func (p *partFile) discard() error { return errors.Join(p.Close(), os.Remove(p.Name())) }

// syncDir makes renames in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
