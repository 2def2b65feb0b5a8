package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// guides are the texts of `waybill help TOPIC`, each under its topic's name.
//
//go:embed help/*.md
var guides embed.FS

type helpCmd struct {
	Topic string `arg:"" optional:"" help:"Which guide."`
}

// Run prints a guide, or the list of them.
func (c *helpCmd) Run(in *invocation) error {
	if c.Topic == "" {
		return printTopics(in)
	}
	text, err := guides.ReadFile(path.Join("help", path.Base(c.Topic)+".md"))
	if err != nil {
		return usagef("there is no guide %q; there are: %s", c.Topic, strings.Join(topics(), ", "))
	}
	_, err = in.out.Write(text)
	return err
}

func printTopics(in *invocation) error {
	t := newTable(in.out)
	for _, topic := range topics() {
		t.row("waybill help "+topic, titleOf(topic))
	}
	t.row("waybill COMMAND --help", "A command's flags")
	return t.Flush()
}

func topics() []string {
	files, _ := fs.Glob(guides, "help/*.md") // the pattern is well formed
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(path.Base(f), ".md")
	}
	return names
}

// titleOf is a guide's first heading.
func titleOf(topic string) string {
	text, err := guides.ReadFile("help/" + topic + ".md")
	if err != nil {
		return fmt.Sprint(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimLeft(first, "# ")
}
