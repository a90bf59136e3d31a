//! Maps headings to fields.

use super::Field;

/// The destination of the lines under a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field.
    Field(Field),
    /// `Progress` itself: its subheadings or check boxes determine the field.
    Progress,
    /// The beginning of a split turn.
    Turn(TurnPlace),
    /// A heading around others, without content of its own.
    Frame,
}

/// A part of a split turn's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPlace {
    /// The user's request.
    Request,
    /// What was done before the cut.
    Early,
    /// What the rest of the turn needs.
    Suffix,
}

/// Returns the destination for a heading, if it is known.
pub fn place(name: &str) -> Option<Place> {
    let name = plain(name);
    // No known name is longer, and this runs on every line of an untrusted text.
    if name.is_empty() || name.len() > 60 {
        return None;
    }
    let name = name.to_lowercase();
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
}

/// Strips a heading of Markdown, numbering, brackets and colon.
pub(super) fn plain(name: &str) -> &str {
    let decoration = |c: char| {
        c.is_whitespace() || matches!(c, '#' | '*' | '_' | ':' | '：' | '【' | '】' | '`' | '=')
    };
    let name = name.trim_matches(decoration);
    let digits = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let unnumbered = match digits.strip_prefix(['.', ')', '、']) {
        Some(rest) if digits.len() < name.len() => rest,
        _ => name,
    };
    unnumbered.trim_matches(|c: char| decoration(c) || !(c.is_alphanumeric() || c.is_ascii()))
}

use Field::{Blocked, Constraints, CriticalContext, Decisions, Done, Goal, InProgress, NextSteps};
use Place::Field as To;

/// Names in lower case: those of pi, of OpenClaw's two modes, of CoPaw, of Claude Code, and
/// variants that models write.
const NAMES: &[(&str, Place)] = &[
    ("goal", To(Goal)),
    ("goals", To(Goal)),
    ("current goal", To(Goal)),
    ("objective", To(Goal)),
    ("user goal", To(Goal)),
    ("primary request and intent", To(Goal)),
    ("目标", To(Goal)),
    ("当前目标", To(Goal)),
    ("任务目标", To(Goal)),
    ("用户目标", To(Goal)),
    ("用户需求", To(Goal)),
    ("constraints & preferences", To(Constraints)),
    ("constraints and preferences", To(Constraints)),
    ("constraints/rules", To(Constraints)),
    ("constraints", To(Constraints)),
    ("preferences", To(Constraints)),
    ("rules", To(Constraints)),
    ("requirements", To(Constraints)),
    ("约束", To(Constraints)),
    ("约束条件", To(Constraints)),
    ("约束与偏好", To(Constraints)),
    ("约束和偏好", To(Constraints)),
    ("限制", To(Constraints)),
    ("要求", To(Constraints)),
    ("偏好", To(Constraints)),
    ("progress", Place::Progress),
    ("进展", Place::Progress),
    ("进度", Place::Progress),
    ("done", To(Done)),
    ("completed", To(Done)),
    ("completed tasks", To(Done)),
    ("finished", To(Done)),
    ("已完成", To(Done)),
    ("完成", To(Done)),
    ("in progress", To(InProgress)),
    ("in-progress", To(InProgress)),
    ("ongoing", To(InProgress)),
    ("current work", To(InProgress)),
    ("current state", To(InProgress)),
    ("进行中", To(InProgress)),
    ("正在进行", To(InProgress)),
    ("当前工作", To(InProgress)),
    ("blocked", To(Blocked)),
    ("blockers", To(Blocked)),
    ("阻塞", To(Blocked)),
    ("受阻", To(Blocked)),
    ("已阻塞", To(Blocked)),
    ("key decisions", To(Decisions)),
    ("decisions", To(Decisions)),
    ("关键决策", To(Decisions)),
    ("关键决定", To(Decisions)),
    ("重要决策", To(Decisions)),
    ("决策", To(Decisions)),
    ("决定", To(Decisions)),
    ("next steps", To(NextSteps)),
    ("next step", To(NextSteps)),
    ("optional next step", To(NextSteps)),
    ("open todos", To(NextSteps)),
    ("todos", To(NextSteps)),
    ("todo", To(NextSteps)),
    ("pending tasks", To(NextSteps)),
    ("pending user asks", To(NextSteps)),
    ("remaining work", To(NextSteps)),
    ("下一步", To(NextSteps)),
    ("后续步骤", To(NextSteps)),
    ("接下来", To(NextSteps)),
    ("待办", To(NextSteps)),
    ("待办事项", To(NextSteps)),
    ("key technical concepts", To(CriticalContext)),
    ("files and code sections", To(CriticalContext)),
    ("errors and fixes", To(CriticalContext)),
    ("problem solving", To(CriticalContext)),
    ("analysis", To(CriticalContext)),
    ("all user messages", To(Constraints)),
    ("critical context", To(CriticalContext)),
    ("context", To(CriticalContext)),
    ("exact identifiers", To(CriticalContext)),
    ("关键上下文", To(CriticalContext)),
    ("重要上下文", To(CriticalContext)),
    ("关键信息", To(CriticalContext)),
    ("上下文", To(CriticalContext)),
    ("original request", Place::Turn(TurnPlace::Request)),
    ("early progress", Place::Turn(TurnPlace::Early)),
    ("context for suffix", Place::Turn(TurnPlace::Suffix)),
    ("turn context (split turn)", Place::Turn(TurnPlace::Suffix)),
    ("summary", Place::Frame),
    ("conversation summary", Place::Frame),
    ("context summary", Place::Frame),
    ("摘要", Place::Frame),
    ("对话摘要", Place::Frame),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_known_however_they_are_dressed() {
        for (name, expected) in [
            ("## Goal", Some(To(Goal))),
            ("**Goal:**", Some(To(Goal))),
            ("1. Primary Request and Intent:", Some(To(Goal))),
            ("🎯 Goal", Some(To(Goal))),
            ("【目标】", Some(To(Goal))),
            ("一些话", None),
            ("### In Progress", Some(To(InProgress))),
            ("关键决策：", Some(To(Decisions))),
            ("2024", None),
            ("goal posts", None),
            ("", None),
            ("###", None),
        ] {
            assert_eq!(place(name), expected, "{name}");
        }
    }

    #[test]
    fn every_name_is_given_as_it_is_looked_up() {
        for (name, found) in NAMES {
            assert_eq!(place(name), Some(*found), "{name}");
        }
    }
}
