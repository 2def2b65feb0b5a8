-- Says that a month is closed; from here on it has no partition made for it again.
insert into waybill.archives (month, low, high, stage, reason, actor)
values (@month::date, @low, @high, 'closed', @reason, @actor)
