"""Drawing trips: ends, lengths, durations, departures."""
