//! The date and speaker of a segment.

use jiff::tz::TimeZone;

use crate::Segment;

/// Returns the day of a segment, as `8 May 2023`, if it is known, and its speaker.
pub(crate) fn head(segment: &Segment) -> (Option<String>, &str) {
    // A time of 0 means unknown.
    let time = Some(segment.timestamp.0).filter(|time| *time > 0);
    let day = time
        .and_then(|time| jiff::Timestamp::from_millisecond(time).ok())
        .map(|at| at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string());
    (day, segment.name.as_deref().unwrap_or(segment.role.name()))
}

/// Returns the text put before each piece of a segment in the lexical index, because questions
/// mention days and speakers, and a result does not name its file or command.
pub fn lexical_head(segment: &Segment) -> String {
    let (day, speaker) = head(segment);
    let parts = [day.as_deref(), Some(speaker), segment.metadata.call.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::{Metadata, SegmentId};

    fn said(time: i64, name: Option<&str>) -> String {
        lexical_head(&Segment {
            id: SegmentId::of("s", &Role::User, "x"),
            agent_id: "main".into(),
            session_id: "s".into(),
            timestamp: Timestamp(time),
            archived_at: None,
            role: Role::User,
            name: name.map(ToOwned::to_owned),
            content: "x".into(),
            tokens: 1,
            metadata: Metadata::default(),
            entry_id: None,
        })
    }

    #[test]
    fn the_head_has_the_day_and_the_speaker() {
        assert_eq!(said(1_683_504_000_000, Some("Ann")), "8 May 2023 Ann");
        assert_eq!(said(0, None), "user");
        assert_eq!(said(i64::MAX, None), "user", "no day of any calendar");
        assert_eq!(said(i64::MIN, None), "user");
    }
}
