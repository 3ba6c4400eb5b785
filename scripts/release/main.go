// Command release has the parts of scripts/release.sh that are the same on every system:
//
//	release sbom PROGRAM VERSION   print what a program was built from, as CycloneDX JSON
//	release licenses DIR PROGRAM…  copy the licences of what programs were built from to DIR
//	release pack DIR FILE SECONDS  pack a directory as FILE, .tar.gz or .zip; all its files are as old as
//	                               SECONDS since 1970, so that equal files make equal archives
package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

func main() {
	err := errors.New("want sbom, licenses or pack, and their arguments; see the head of scripts/release/main.go")
	switch a := os.Args[1:]; {
	case len(a) == 3 && a[0] == "sbom":
		err = sbom(a[1], a[2])
	case len(a) > 2 && a[0] == "licenses":
		err = licenses(a[1], a[2:])
	case len(a) == 4 && a[0] == "pack":
		err = pack(a[1], a[2], a[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// component is a part of a program, as CycloneDX describes it.
type component struct {
	Type     string         `json:"type"`
	Ref      string         `json:"bom-ref"`
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	PURL     string         `json:"purl,omitempty"`
	Hashes   []hash         `json:"hashes,omitempty"`
	Licenses []license      `json:"licenses,omitempty"`
	More     []propertyPair `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type propertyPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom prints the modules that a program has in it.
func sbom(program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	settings := map[string]string{}
	main := component{Type: "application", Ref: "zarrdb", Name: "zarrdb", Version: version, PURL: "pkg:golang/" + info.Main.Path + "@v" + version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: spdx("Apache-2.0")}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		main.More = append(main.More, propertyPair{"go:build:" + s.Key, s.Value})
	}
	std := component{Type: "library", Ref: "std", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), Licenses: spdx("BSD-3-Clause")}
	parts, refs := []component{std}, []string{std.Ref}
	for _, m := range info.Deps {
		files, err := licenseFiles(m)
		if err != nil {
			return err
		}
		id, err := identify(files[0])
		if err != nil {
			return err
		}
		c := component{Type: "library", Ref: m.Path + "@" + m.Version, Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version, Licenses: spdx(id)}
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
			// The sum of go.sum: of a list of files with their sums, and not of one file.
			c.More = []propertyPair{{"go:sum", m.Sum}}
		}
		parts, refs = append(parts, c), append(refs, c.Ref)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]any{
		"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":     map[string]any{"timestamp": settings["vcs.time"], "component": main},
		"components":   parts,
		"dependencies": []any{map[string]any{"ref": main.Ref, "dependsOn": refs}},
	})
}

func spdx(id string) []license {
	l := make([]license, 1)
	l[0].License.ID = id
	return l
}

// licenses copies the licence of Go and those of all modules that the programs were built from.
func licenses(dir string, programs []string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	// Distributions of systems put it elsewhere.
	for _, from := range []string{filepath.Join(strings.TrimSpace(string(root)), "LICENSE"), "/usr/share/doc/golang-go/copyright", "/usr/share/licenses/go/LICENSE"} {
		if err = copyFile(filepath.Join(dir, "go", "LICENSE"), from); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			files, err := licenseFiles(m)
			if err != nil {
				return err
			}
			for _, from := range files {
				if err := copyFile(filepath.Join(dir, filepath.FromSlash(m.Path), filepath.Base(from)), from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

// licenseFiles returns the licence of a module and what its terms ask to be copied. The licence is the first.
func licenseFiles(m *debug.Module) ([]string, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	dir, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", m.Path, err)
	}
	var at struct{ Dir string }
	if err := json.Unmarshal(dir, &at); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(at.Dir)
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && licenseName.MatchString(e.Name()) {
			files = append(files, filepath.Join(at.Dir, e.Name()))
		}
	}
	if readme := filepath.Join(at.Dir, "README.md"); len(files) == 0 && err == nil {
		if _, known := identify(readme); known == nil { // some modules have their licence there
			return []string{readme}, nil
		}
		err = fmt.Errorf("%s has no licence in %s: it cannot be part of a release", m.Path, at.Dir)
	}
	return files, err
}

// identify returns the SPDX name of a licence by words that only this one has.
func identify(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	s := strings.Join(strings.Fields(string(text)), " ")
	has := func(words string) bool { return strings.Contains(s, words) }
	switch {
	case has("Apache License Version 2.0"), has("Apache License, Version 2.0"):
		return "Apache-2.0", nil
	case has("Mozilla Public License"):
		return "MPL-2.0", nil
	case has("Permission is hereby granted, free of charge"):
		return "MIT", nil
	case has("Redistribution and use in source and binary forms") && has("Neither the name"), has("names of its contributors may be used"):
		return "BSD-3-Clause", nil
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause", nil
	case has("Permission to use, copy, modify, and/or distribute"), has("Permission to use, copy, modify, and distribute"):
		return "ISC", nil
	case has("This is free and unencumbered software"):
		return "Unlicense", nil
	case has("CC0 1.0 Universal"):
		return "CC0-1.0", nil
	}
	return "", fmt.Errorf("%s: the licence is not known; add it to identify in scripts/release/main.go", file)
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// pack packs dir, with its own name as the folder of all files.
func pack(dir, to, seconds string) (err error) {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	at := time.Unix(n, 0).UTC()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	if strings.HasSuffix(to, ".zip") {
		z := zip.NewWriter(f)
		err := walk(dir, func(name string, mode fs.FileMode, content []byte) error {
			h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
			h.SetMode(mode)
			w, err := z.CreateHeader(h)
			if err == nil {
				_, err = w.Write(content)
			}
			return err
		})
		return cmp.Or(err, z.Close())
	}
	g, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(g)
	err = walk(dir, func(name string, mode fs.FileMode, content []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: int64(mode.Perm()), Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err := t.Write(content)
		return err
	})
	return cmp.Or(err, t.Close(), g.Close())
}

// walk calls fn with each file below dir in the order of names: its name in an archive, the rights that it gets, and its content.
func walk(dir string, fn func(name string, mode fs.FileMode, content []byte) error) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		return fn(filepath.ToSlash(inside), 0o644|info.Mode().Perm()&0o111, content)
	})
}
