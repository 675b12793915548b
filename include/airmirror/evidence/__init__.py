"""Evidence for mirrors that anybody made: two logs aligned by their records, every difference named."""
