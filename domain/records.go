package domain

// ExportMade: events were written to a file, for somebody outside. It is recorded before
// the file is put in its place.
type ExportMade struct {
	Format     string   `json:"format"` // jsonl, csv
	Since      Instant  `json:"since,omitzero"`
	Until      Instant  `json:"until,omitzero"`
	Names      []string `json:"names,omitempty"` // of events; none: all
	AllTenants bool     `json:"all_tenants,omitempty"`
	Month      string   `json:"month,omitempty"` // of an archive: 2026-01
	Count      int64    `json:"count"`
	SHA256     Hex      `json:"sha256"`
	File       string   `json:"file"` // without its directories
}

// PartitionArchived: a month of deliveries has left the ledger for a file. What is left
// of its events are their positions and hashes. In the system tenant's stream.
type PartitionArchived struct {
	Month      string `json:"month"` // 2026-01
	Reason     string `json:"reason,omitempty"`
	Events     int64  `json:"events"`
	Deliveries int64  `json:"deliveries"`
	First      int64  `json:"first"` // positions
	Last       int64  `json:"last"`
	SHA256     Hex    `json:"sha256"`
	File       string `json:"file"` // without its directories
}

func (ExportMade) fact()        {}
func (PartitionArchived) fact() {}
