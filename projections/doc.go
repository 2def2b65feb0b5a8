// Package projections holds what is derived from the log, and the questions that
// are asked of it.
//
// A projection row is the fold of one stream's events, nothing else: the same
// domain.Delivery.Evolve computes it when an append writes it ([Delivery.Advance]),
// when it is rebuilt or read as of a time ([FoldDelivery]), and when a [Verification]
// compares every row with its stream. There is no second implementation in SQL.
//
// Questions are keyset-paged and bound to a tenant in SQL. Nothing here writes;
// rows are written by the append that carries their events.
package projections
