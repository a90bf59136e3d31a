//! The system time, for callers that have no clock.

use std::time::SystemTime;

use ctx_core::Timestamp;

/// Returns the system time. A time before 1970 is reported as 1970.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
