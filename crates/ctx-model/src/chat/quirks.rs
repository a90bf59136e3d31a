//! Features that "compatible" servers do not support, learned from their refusals.

use crate::overflow::overflow_of;
use crate::provider_error::ErrorText;

/// A set of learned quirks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks(pub(super) u16);

/// A quirk: its bit, and the words of a refusal that reveal it.
struct Lesson {
    bit: u16,
    words: &'static [&'static str],
    /// Whether refusals with a status other than 400 and 422 also count.
    at_any_status: bool,
}

/// Specific rules before general ones: the first unlearned match is taken.
const LESSONS: [Lesson; 10] = [
    lesson(Quirks::OTHER_LIMIT_FIELD, &["max_completion_tokens"]),
    lesson(Quirks::NO_STREAM_OPTIONS, &["stream_options"]),
    lesson(Quirks::NO_CACHE_KEY, &["prompt_cache_key"]),
    lesson(Quirks::NO_CACHE_MARKS, &["cache_control"]),
    lesson(Quirks::NO_ENCRYPTED, &["encrypted_content", "encrypted content"]),
    lesson(Quirks::NO_THOUGHT_SUMMARY, &["reasoning.summary", "reasoning summar"]),
    lesson(
        Quirks::NO_THOUGHTS,
        &["reasoning_content", "thinking block", "`thinking`", "`signature`", "invalid signature"],
    ),
    lesson(Quirks::NO_EFFORT, &["reasoning"]),
    Lesson {
        bit: Quirks::IN_TURN,
        words: &["must alternate", "after role", "expected last role", "only user and assistant"],
        at_any_status: true,
    },
    Lesson {
        bit: Quirks::NO_IMAGES,
        words: &[
            "support image",
            "supports image",
            "image input",
            "`image_url`, expected",
            "image_url is only supported",
            "content must be a string",
        ],
        at_any_status: true,
    },
];

const fn lesson(bit: u16, words: &'static [&'static str]) -> Lesson {
    Lesson { bit, words, at_any_status: false }
}

impl Quirks {
    /// The answer limit uses the other one of its two field names.
    pub(super) const OTHER_LIMIT_FIELD: u16 = 1;
    /// Usage in a stream cannot be requested.
    pub(super) const NO_STREAM_OPTIONS: u16 = 2;
    /// The thinking level cannot be set.
    pub(super) const NO_EFFORT: u16 = 4;
    /// No cache key is accepted.
    pub(super) const NO_CACHE_KEY: u16 = 8;
    /// Cache marks are not accepted.
    pub(super) const NO_CACHE_MARKS: u16 = 16;
    /// Encrypted reasoning is not available.
    pub(super) const NO_ENCRYPTED: u16 = 32;
    /// Reasoning summaries are not available.
    pub(super) const NO_THOUGHT_SUMMARY: u16 = 64;
    /// Reasoning of earlier answers is not accepted.
    pub(super) const NO_THOUGHTS: u16 = 128;
    /// User and assistant messages must alternate.
    pub(super) const IN_TURN: u16 = 256;
    /// The model does not accept images.
    pub(super) const NO_IMAGES: u16 = 512;

    pub(super) fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    /// Returns the set with the quirk that a refusal reveals; `None` if it reveals nothing new.
    /// Each quirk is learned once, so the number of retries is bounded.
    pub(super) fn after(self, status: u16, error_text: &ErrorText) -> Option<Self> {
        let bad_request = matches!(status, 400 | 422);
        if !(bad_request || matches!(status, 404 | 415 | 500))
            || overflow_of(status, error_text).is_some()
        {
            return None;
        }
        // Some servers require a field that others refuse; dropping it would be wrong.
        let is_missing = error_text.says(&["missing", "is required", "must be provided"]);
        let teaches = |lesson: &&Lesson| {
            (bad_request || lesson.at_any_status)
                && !(is_missing && lesson.bit == Self::NO_THOUGHTS)
                && !self.has(lesson.bit)
                && error_text.says(lesson.words)
        };
        Some(Self(self.0 | LESSONS.iter().find(teaches)?.bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_error::read;

    #[test]
    fn each_refusal_reveals_one_quirk_once() {
        for (status, text, bit) in [
            (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'", 1),
            (422, "unknown field stream_options", 2),
            (400, "unknown parameter reasoning_effort", 4),
            (400, "Unrecognized request argument supplied: prompt_cache_key", 8),
            (400, "messages.0.content.0.cache_control: Extra inputs are not permitted", 16),
            (400, "Encrypted content is not supported with this model.", 32),
            (400, "Your organization must be verified to generate reasoning summaries.", 64),
            (400, "messages.1.content.0: Invalid `signature` in `thinking` block", 128),
            (400, "property 'reasoning_content' is unsupported", 128),
            (500, "Conversation roles must alternate user/assistant/user/assistant/...", 256),
            (400, "Expected last role User or Tool (or Assistant with prefix True)", 256),
            (404, "No endpoints found that support image input", 512),
            (400, "unknown variant `image_url`, expected `text`", 512),
        ] {
            let error_text = read(text);
            let learned = Quirks::default().after(status, &error_text);
            assert_eq!(learned, Some(Quirks(bit)), "{text}");
            let again = learned.and_then(|quirks| quirks.after(status, &error_text));
            assert!(again.is_none_or(|again| again.0 > bit || bit == 128), "{text}: {again:?}");
        }
        assert_eq!(Quirks::default().after(500, &read("reasoning failed")), None);
        let missed = "Missing `reasoning_content` field in the assistant message at index 2";
        let learned = Quirks::default().after(400, &read(missed));
        assert!(learned.is_none_or(|quirks| !quirks.has(Quirks::NO_THOUGHTS)));
        assert_eq!(Quirks::default().after(401, &read("stream_options")), None);
        let too_long = "prompt is too long: 9 tokens > 8 maximum (cache_control)";
        assert_eq!(Quirks::default().after(400, &read(too_long)), None);
    }
}
