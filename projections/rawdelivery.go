package projections

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"waybill/domain"
)

// deliveryFormats asks for the columns of [DeliveryTargets] in the form that costs least.
var deliveryFormats = pgx.QueryResultFormats{
	pgtype.BinaryFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.TextFormatCode,
	pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.TextFormatCode,
	pgtype.TextFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode, pgtype.BinaryFormatCode,
	pgtype.TextFormatCode, pgtype.BinaryFormatCode,
}

// rawDeliveries reads the rows of a query for the columns of [DeliveryTargets] in
// [deliveryFormats]: for whoever reads all of them, as it takes a third of a scan's time.
func rawDeliveries(rows pgx.Rows) (list []Delivery, err error) {
	defer rows.Close()
	words, raw := interned{}, binaryOf(rows)
	for rows.Next() {
		var d Delivery
		if raw {
			err = readRawDelivery(rows.RawValues(), words, &d)
		} else {
			d, err = scanDelivery(rows)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, rows.Err()
}

func readRawDelivery(v [][]byte, words interned, d *Delivery) error {
	if len(v) != len(deliveryFormats) || len(v[0]) != len(d.ID) || len(v[21]) != 1 {
		return fmt.Errorf("read a delivery: the columns are not those of its row")
	}
	d.ID, d.Tenant, d.EndpointID, d.MessageID = rawUUID(v[0]), words.of(v[1]), rawUUID(v[2]), rawUUID(v[3])
	d.EventType, d.IdempotencyKey, d.OrderingKey = words.of(v[4]), string(v[5]), string(v[6])
	d.State, d.Version = domain.State(words.of(v[7])), rawInt(v[8])
	d.Attempts, d.Cycle, d.CycleAttempts = rawInt(v[9]), rawInt(v[10]), rawInt(v[11])
	d.DueAt = rawInstant(v[12])
	if token := rawUUID(v[13]); token != uuid.Nil {
		d.Claim = domain.Claim{Token: token, Worker: words.of(v[25]), LeaseUntil: rawInstant(v[26])}
	}
	d.FailureReason, d.LastOutcome = domain.FailureReason(words.of(v[14])), domain.Outcome(words.of(v[15]))
	d.LastAttempt, d.UnknownAttempts, d.Proof, d.ForcedAfter = rawInt(v[16]), rawInt(v[17]), rawInt(v[18]), rawInt(v[19])
	d.HeldBy, d.PayloadErased = rawUUID(v[20]), v[21][0] == 1
	d.CreatedAt, d.UpdatedAt, d.Head = rawInstant(v[22]), rawInstant(v[23]), rawHash(v[24])
	return nil
}
