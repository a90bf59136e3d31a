//! Model catalogue: windows and prices. Model and embedding providers over HTTP.
