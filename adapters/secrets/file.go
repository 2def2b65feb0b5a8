package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrReadable: the keyset's file can be read or written by others than its owner.
var ErrReadable = errors.New("others than its owner can read or write it")

// FromFile reads the keyset of a file that nobody but its owner may read or write:
// mode 0600, or less; a symbolic link counts as what it points to. Where the system
// has no such modes (Windows), the mode is not looked at.
func FromFile(path string) (*Vault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the keyset: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := checkMode(f); err != nil {
		return nil, fmt.Errorf("keyset %s: %w", path, err)
	}
	v, err := Load(f)
	if err != nil {
		return nil, fmt.Errorf("keyset %s: %w", path, err)
	}
	return v, nil
}

// checkMode asks the open file, not its path, which may name another by now.
func checkMode(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("mode %04o: %w; run: chmod 600 %q", mode, ErrReadable, f.Name())
	}
	return nil
}

// Save writes the keyset to a new file of mode 0600, and through to the disk. It
// never replaces a file: where there is one, the error is [fs.ErrExist]. The file
// appears under its name complete or not at all; for that, the directory's file
// system must know hard links.
func (v *Vault) Save(path string) error {
	content, err := v.json()
	if err != nil {
		return err
	}
	if err := writeNew(path, content); err != nil {
		return fmt.Errorf("save the keyset: %w", err)
	}
	return nil
}

// writeNew makes a file that is there whole or not at all.
func writeNew(path string, content []byte) error {
	dir := filepath.Dir(path)
	temp, err := writeTemp(dir, content)
	if err != nil {
		return err
	}
	err = os.Link(temp, path)
	if err := errors.Join(err, os.Remove(temp)); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeTemp writes a file that no other process knows and makes it durable.
func writeTemp(dir string, content []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, ".waybill-*") // O_EXCL, 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir makes the directory's entries durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be flushed there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LoadOrCreate reads the keyset of a file, as [FromFile] does, or makes one with a
// fresh key where there is none. Of several processes that start at once one makes
// it and all return it. It is meant for development: in production a keyset that is
// not found is a fault, not a reason for a new one.
func LoadOrCreate(path string) (*Vault, error) {
	v, err := FromFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	if v, err = New(); err != nil {
		return nil, err
	}
	if err = v.Save(path); errors.Is(err, fs.ErrExist) {
		return FromFile(path)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}
