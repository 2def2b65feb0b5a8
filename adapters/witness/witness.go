// Package witness keeps the last checkpoint in a file outside the database, so that a
// database which was put back to an older state does not go unnoticed.
package witness

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// maxCheckpoint bounds a checkpoint's file, in bytes.
const maxCheckpoint = 64 << 10

// File is where a checkpoint is kept. Several processes on one machine may share it.
type File struct{ Path string }

// Load returns the checkpoint, or nil where none was kept yet.
func (f File) Load() ([]byte, error) {
	r, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the checkpoint file: %w", err)
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(io.LimitReader(r, maxCheckpoint))
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint file: %w", err)
	}
	return content, nil
}

// Save puts a checkpoint in the file's place, whole and through to the disk.
func (f File) Save(checkpoint []byte) (err error) {
	dir := filepath.Dir(f.Path)
	temp, err := os.CreateTemp(dir, ".waybill-*")
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	_, err = temp.Write(checkpoint)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), f.Path)
	}
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return syncDir(dir)
}

// SetAside keeps the present checkpoint under another name, ending in the suffix, before a
// log that does not extend it takes its place.
func (f File) SetAside(suffix string) error {
	if err := os.Rename(f.Path, f.Path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the checkpoint aside: %w", err)
	}
	return syncDir(filepath.Dir(f.Path))
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be flushed there
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
