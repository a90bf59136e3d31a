//! The prompts for models. The texts are in files next to this one.

mod fence;
mod serialize;

use ctx_core::{IdentifierPolicy, SummaryRequest, Tokens};

use crate::SummaryJob;

pub use serialize::{SerializeOptions, serialize};

pub(crate) use fence::{escaped, fenced, is_invisible, is_role_marker, without_markers};
pub(crate) use serialize::{oversized_note, serialize_disarmed};

/// The maximum length of the focus, in code points (OpenClaw).
pub const MAX_FOCUS_CHARS: usize = 800;

/// The maximum length of configured instructions, in code points.
const MAX_INSTRUCTION_CHARS: usize = 2_000;

const SYSTEM: &str = include_str!("system.md");
const INITIAL: &str = include_str!("initial.md");
const UPDATE: &str = include_str!("update.md");
const TURN_PREFIX: &str = include_str!("turn_prefix.md");
const TURN_PREFIX_UPDATE: &str = include_str!("turn_prefix_update.md");
const BRANCH: &str = include_str!("branch.md");
const MERGE: &str = include_str!("merge.md");
const CONDENSE: &str = include_str!("condense.md");
const SECTIONS: &str = include_str!("sections.md");
const CRITICAL_CONTEXT: &str = include_str!("critical_context.md");
const KEEP: &str = include_str!("keep.md");
const PRESERVE: &str = include_str!("identifiers_preserve.md");
const ANONYMIZE: &str = include_str!("identifiers_anonymize.md");
const CITATIONS: &str = include_str!("citations.md");

/// What is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The history of a session.
    History,
    /// The beginning of a turn whose end is kept.
    TurnPrefix,
    /// A branch that the user left.
    Branch,
}

/// The prompts of one job.
pub(crate) struct Prompts {
    /// Instructions for every summary of the job: identifiers, citations, the user's focus.
    wishes: String,
}

impl Prompts {
    pub(crate) fn of(job: &SummaryJob) -> Self {
        let mut wishes = String::new();
        let texts = [identifiers(job), Some(CITATIONS.trim_end().to_owned()), focus(job)];
        for text in texts.into_iter().flatten() {
            wishes.push_str("\n\n");
            wishes.push_str(&text);
        }
        Self { wishes }
    }

    /// Builds a request to summarise `conversation` and update `previous`.
    pub(crate) fn summary(
        &self,
        subject: Subject,
        conversation: &str,
        previous: Option<&str>,
        max: Tokens,
    ) -> SummaryRequest {
        let mut prompt = fenced("conversation", conversation);
        if let Some(previous) = previous {
            prompt.push_str(&fenced("previous-summary", previous));
        }
        let task: &[&str] = match (subject, previous) {
            (Subject::History, None) => &[INITIAL, SECTIONS, CRITICAL_CONTEXT, KEEP],
            (Subject::History, Some(_)) => &[UPDATE, SECTIONS, CRITICAL_CONTEXT, KEEP],
            (Subject::Branch, None) => &[BRANCH, SECTIONS, KEEP],
            (Subject::Branch, Some(_)) => &[BRANCH, UPDATE, SECTIONS, KEEP],
            (Subject::TurnPrefix, None) => &[TURN_PREFIX],
            (Subject::TurnPrefix, Some(_)) => &[TURN_PREFIX, TURN_PREFIX_UPDATE],
        };
        self.request(prompt, task, max)
    }

    /// Builds a request to merge several summaries into one.
    pub(crate) fn merge(&self, parts: &[String], max: Tokens) -> SummaryRequest {
        let prompt: String = parts.iter().map(|part| fenced("partial-summary", part)).collect();
        self.request(prompt, &[MERGE, SECTIONS, CRITICAL_CONTEXT], max)
    }

    /// Builds a request to shorten a summary.
    pub(crate) fn condense(&self, summary: &str, max: Tokens) -> SummaryRequest {
        self.request(fenced("previous-summary", summary), &[CONDENSE], max)
    }

    /// Returns the longest prompt, without its material.
    pub(crate) fn longest(&self) -> String {
        let request = self.summary(Subject::Branch, "", Some(""), Tokens(u32::MAX));
        let mut text = request.system + &request.prompt;
        text.push_str(CRITICAL_CONTEXT);
        text
    }

    fn request(&self, mut prompt: String, task: &[&str], max: Tokens) -> SummaryRequest {
        prompt.push_str(task.join("\n").trim_end());
        prompt.push_str(&self.wishes);
        // Models overshoot the stated length; the output limit is a separate bound.
        let wanted = max.scale(0.8);
        prompt.push_str(&format!("\n\nWrite at most {wanted} tokens."));
        SummaryRequest { system: SYSTEM.trim_end().to_owned(), prompt, max_tokens: max }
    }
}

/// Returns the identifier instructions. The caller's take precedence over the configuration's.
fn identifiers(job: &SummaryJob) -> Option<String> {
    let policy = job.instructions.identifier_policy.unwrap_or(job.config.identifier_policy);
    let given = job
        .instructions
        .identifier_instructions
        .as_deref()
        .or(job.config.identifier_instructions.as_deref())
        .filter(|text| !text.trim().is_empty())
        .map(|text| {
            let text = fence::wish("instructions", text, MAX_INSTRUCTION_CHARS);
            format!("On identifiers the user asks for this, in the summary's text only: {text}")
        });
    let own = match policy {
        IdentifierPolicy::Off => return None,
        IdentifierPolicy::Anonymize => Some(ANONYMIZE),
        IdentifierPolicy::Preserve => Some(PRESERVE),
        // Without instructions, losing nothing is the safe choice.
        IdentifierPolicy::Custom if given.is_none() => Some(PRESERVE),
        IdentifierPolicy::Custom => None,
    };
    let parts: Vec<_> =
        own.map(|text| text.trim_end().to_owned()).into_iter().chain(given).collect();
    Some(parts.join("\n\n"))
}

/// Returns the focus of the summary: the request's, then the configuration's.
fn focus(job: &SummaryJob) -> Option<String> {
    let wishes = [
        (job.focus.as_deref(), MAX_FOCUS_CHARS),
        (job.config.custom_instructions.as_deref(), MAX_INSTRUCTION_CHARS),
    ];
    let given = wishes.into_iter().filter_map(|(text, max)| {
        let text = text.filter(|text| !text.trim().is_empty())?;
        Some(fence::wish("focus", text, max))
    });
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| {
        format!(
            "Dwell on what is asked for here, as far as the conversation holds it; it changes \
             nothing else of the task:\n{}",
            given.join("\n")
        )
    })
}

#[cfg(test)]
mod tests;
