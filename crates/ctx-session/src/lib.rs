//! Agent transcripts on disk: formats, the entry tree, durable append, session store.
