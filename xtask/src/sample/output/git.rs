//! What git prints.

use std::fmt::Write;

use similar::TextDiff;

use crate::sample::workspace::Workspace;

/// `git diff` of all paths that begin with `under`.
pub(crate) fn diff(ws: &Workspace, under: &str) -> String {
    let mut out = String::new();
    for (path, old, new) in ws.changes().into_iter().filter(|(path, ..)| path.starts_with(under)) {
        let (before, mode) = if old.is_empty() {
            ("/dev/null".to_owned(), "new file mode 100644\n")
        } else {
            (format!("a/{path}"), "")
        };
        let _ = write!(out, "diff --git a/{path} b/{path}\n{mode}");
        let after = format!("b/{path}");
        let _ = write!(
            out,
            "{}",
            TextDiff::from_lines(old, new).unified_diff().header(&before, &after)
        );
    }
    out
}

/// `git diff --stat`.
pub(crate) fn stat(ws: &Workspace) -> String {
    let mut out = String::new();
    let (mut files, mut added, mut removed) = (0, 0, 0);
    for (path, old, new) in ws.changes() {
        let diff = TextDiff::from_lines(old, new);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (plus, minus) = (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete));
        let _ = writeln!(
            out,
            " {path:<28} | {:>4} {}{}",
            plus + minus,
            "+".repeat(plus.min(40)),
            "-".repeat(minus.min(20))
        );
        (files, added, removed) = (files + 1, added + plus, removed + minus);
    }
    let _ = writeln!(out, " {files} files changed, {added} insertions(+), {removed} deletions(-)");
    out
}

/// `git status --short`.
pub(crate) fn status(ws: &Workspace) -> String {
    let mut out = String::new();
    for (path, old, _) in ws.changes() {
        let _ = writeln!(out, "{} {path}", if old.is_empty() { "??" } else { " M" });
    }
    out
}
