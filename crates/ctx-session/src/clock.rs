//! The time, for whoever has nobody to take it from.

use std::time::SystemTime;

use ctx_core::Timestamp;

/// Where the time comes from.
pub type Clock = fn() -> Timestamp;

/// The system's time. A clock that stands before 1970 says 1970.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
