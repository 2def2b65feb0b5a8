package domain

// RebuildDone: a projection was computed anew from the log and took the place of the one
// before. In the system tenant's stream.
type RebuildDone struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`
	Rows       int64  `json:"rows"`
	Differing  int64  `json:"differing"` // how many rows were not as the log says
}

func (RebuildDone) fact() {}
