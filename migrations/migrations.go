// Package migrations holds the schema's history: one numbered SQL file a step,
// applied in order by goose and never changed once released. The files name the
// schema waybill; whoever applies them puts another in its place where asked.
package migrations

import "embed"

// FS holds the files NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS
