//! The files of `assets`, which the program has compressed.

use std::collections::HashMap;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/assets"));

static TEXTS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    serde_json::from_reader(DeflateDecoder::new(PACKED)).expect("the build packed it")
});

/// Returns a file of `assets` by its path there; an unknown one is empty.
pub(crate) fn asset(path: &str) -> &'static str {
    TEXTS.get(path).map_or("", String::as_str)
}
