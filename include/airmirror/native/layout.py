"""The places of numbers in the arrays that ``scanning.find`` is given: known to the loop and to its callers (wire/small)."""

# Columns of the table of batches that were found: those of wire.batch.Batch, in its order.
POSITION, SIZE, BASE_OFFSET, LEADER_EPOCH, CHECKSUM, ATTRIBUTES, LAST_DELTA = range(7)
BASE_TIME, MAX_TIME, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, COUNT = range(7, 13)
COLUMNS = 13

# The state, given and given back: where to read on in the buffer, the next offset of the log, the offsets that were left out
# by reason, the epoch of the last batch, and the aborted transactions that are still to begin, and that have begun.
AT, OFFSET, CONTROLS, ABORTED, HOLES, EPOCH, PENDING, OPEN = range(8)
STATES = 8

# Rows of the table of aborted transactions: first offset and producer of those to begin, the last one first; producers of those
# that have begun.
PENDING_OFFSET, PENDING_PRODUCER, OPEN_PRODUCER = range(3)
MOST_ABORTED = 64  # in all of a row; a response with more is read batch by batch

# Rows of the table of what markers say: producers whose records came since their last marker, and the first offset of these; the
# same of transactions that an abort marker has ended, and its offset.
BEGUN_PRODUCER, BEGUN_OFFSET, ENDED_PRODUCER, ENDED_OFFSET, ENDED_MARKER = range(5)
MOST_BEGUN = 1024  # in a row, likewise
