package main

import (
	"waybill/projections"
)

const description = "A delivery ledger on PostgreSQL: it hands messages to HTTP endpoints and keeps " +
	"an append-only history of every claim, attempt, result and decision. " +
	"Every flag may also come from the environment: --database-url is WAYBILL_DATABASE_URL."

// cli is the whole command line.
type cli struct {
	globals `embed:""`

	Demo         demoCmd         `cmd:"" help:"See the whole life of deliveries in a quarter of a minute; needs nothing set up."`
	Dev          devCmd          `cmd:"" help:"Run everything on an embedded database, for development."`
	Serve        serveCmd        `cmd:"" help:"Run the API, a worker, or both."`
	Migrate      migrateCmd      `cmd:"" help:"Bring the database's schema up to date, as its owner."`
	Tenants      tenantsCmd      `cmd:"" help:"Make and list tenants."`
	Keys         keysCmd         `cmd:"" help:"Make, list and revoke API keys."`
	Keyset       keysetCmd       `cmd:"" help:"Make the keyset that seals secrets in the database."`
	Endpoints    endpointsCmd    `cmd:"" help:"Configure where deliveries go."`
	Submit       submitCmd       `cmd:"" help:"Hand in a message for one endpoint; prints the delivery's id."`
	Import       importCmd       `cmd:"" help:"Take over what another system has sent already; none of it is sent again."`
	Deliveries   deliveriesCmd   `cmd:"" help:"Look at deliveries and decide about them."`
	Events       eventsCmd       `cmd:"" help:"Read the log."`
	Audit        auditCmd        `cmd:"" help:"Answer what auditors ask."`
	Erase        eraseCmd        `cmd:"" help:"Erase payloads and what receivers answered; the history stays and still verifies."`
	Export       exportCmd       `cmd:"" help:"Write history for an auditor, with a manifest that proves it."`
	VerifyExport verifyExportCmd `cmd:"" help:"Check an export; needs no database."`
	Verify       verifyCmd       `cmd:"" help:"Compare everything that is derived from the log, or bound to it, with the log; exit 4 if anything is wrong."`
	Projections  projectionsCmd  `cmd:"" help:"Look at what is derived from the log."`
	Rebuild      rebuildCmd      `cmd:"" help:"Compute a projection anew from the log, beside traffic; says what was wrong."`
	Partitions   partitionsCmd   `cmd:"" help:"Look at the months that the log consists of."`
	Archive      archiveCmd      `cmd:"" help:"Move whole months of settled deliveries into files, verified before they go; as the schema's owner."`
	Checkpoint   checkpointCmd   `cmd:"" help:"State, signed, how far the log is sealed and what its root is."`
	Proof        proofCmd        `cmd:"" help:"Prove that an event is in the log, and check proofs."`
	Doctor       doctorCmd       `cmd:"" help:"Look for what is wrong or about to be; exit 1 if something is."`
	Bench        benchCmd        `cmd:"" help:"Measure how fast this machine is at it, on a database of its own; needs nothing set up."`
	Torture      tortureCmd      `cmd:"" help:"Kill, cut and restart everything, then check what the ledger says of it; needs nothing set up."`
	Help         helpCmd         `cmd:"" help:"Read a guide, or list them."`
	Version      versionCmd      `cmd:"" help:"Print the version."`
}

// globals are the flags of every command.
type globals struct {
	DatabaseURL string             `placeholder:"URL" help:"The ledger's database; better given in the environment, as others can see a process's arguments."`
	Schema      projections.Schema `default:"waybill" help:"The schema that the ledger lives in."`
	Tenant      string             `default:"default" help:"Whose data."`
	JSON        bool               `help:"Print one JSON value a line."`
	KeysetFile  string             `placeholder:"F" help:"The keyset that seals secrets (mode 0600); its content may come as $$WAYBILL_KEYSET instead."`
}
