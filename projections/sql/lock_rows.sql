-- Holds the inline projections as they are, against being swapped for rebuilt ones only.
lock table waybill.deliveries, waybill.endpoints in access share mode
