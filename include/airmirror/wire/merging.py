"""When small batches are merged: sizes in bytes, by codec."""

# The size below which a batch is merged with its neighbours. What merging saves is one request of the target's (about
# 80 µs); what it costs is to compress again, which gzip makes dear.
MERGED_BELOW = {0: 16_384, 1: 512, 2: 4_096, 3: 4_096, 4: 4_096}
MERGED_SIZE = 262_144
