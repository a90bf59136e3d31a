//! What git prints.

use std::fmt::Write;

use similar::TextDiff;

use crate::sample::workspace::Workspace;

/// As much of a long output, from its end, as pi's `bash` shows.
const SHOWN_BYTES: usize = 50 * 1024;

/// `git diff` of all paths that begin with `under`.
pub(super) fn diff(ws: &Workspace, under: &str) -> String {
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
    capped(out)
}

fn capped(text: String) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut size = 0;
    let shown = lines.iter().rev().take_while(|line| {
        size += line.len() + 1;
        size <= SHOWN_BYTES
    });
    let first = lines.len() - shown.count();
    if first == 0 {
        return text;
    }
    format!(
        "{}\n\n[Showing lines {}-{} of {} (50.0KB limit). Full output: /tmp/pi-bash-5d1c0e7a.log]",
        lines[first..].join("\n"),
        first + 1,
        lines.len(),
        lines.len()
    )
}
