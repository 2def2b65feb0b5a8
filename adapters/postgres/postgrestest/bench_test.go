package postgrestest

import ("testing";"time";"context";"fmt";"github.com/jackc/pgx/v5";"sync")

func TestBenchX(t *testing.T) {
	New(t)
	ctx := context.Background()
	url := sharedURL(t)
	for _, strategy := range []string{"file_copy", "wal_log", "file_copy","wal_log"} {
	for _, par := range []int{1, 8} {
		start := time.Now()
		var wg sync.WaitGroup
		for g := range par {
			wg.Go(func() {
				for i := range 10 {
				if err := as(ctx, url, func(c *pgx.Conn) error {
				_, err := c.Exec(ctx, fmt.Sprintf("create database bx_%s_%d_%d template %s strategy %s", strategy, g, i, migrated().name(url), strategy))
				return err}); err != nil { t.Error(err) }
				}
			})
		}
		wg.Wait()
		mid := time.Now()
		for g := range par {
			wg.Go(func() {
				for i := range 10 {
				if err := as(ctx, url, func(c *pgx.Conn) error {
				_, err := c.Exec(ctx, fmt.Sprintf("drop database bx_%s_%d_%d with (force)", strategy, g, i))
				return err}); err != nil { t.Error(err) }
				}
			})
		}
		wg.Wait()
		t.Logf("%s par %d: create %v each, drop %v each", strategy, par, mid.Sub(start)/time.Duration(10*par), time.Since(mid)/time.Duration(10*par))
	}}
	as(ctx, url, func(c *pgx.Conn) error { var s string; c.QueryRow(ctx, "select pg_size_pretty(pg_database_size('"+migrated().name(url)+"')) || ' ' || (select count(*) from pg_class)").Scan(&s); t.Log(s); return nil})
	s := time.Now(); for range 20 { as(ctx, url, func(c *pgx.Conn) error { return nil}) }; t.Log("connect", time.Since(s)/20)
}
