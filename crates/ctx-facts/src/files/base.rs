//! The folder that the paths of a summary are relative to.

use std::collections::HashMap;

use ctx_text::{SpanKind, spans};

/// The line that names the folder, up to its path.
const LEAD: &str = "Paths are relative to `";

/// The least number of characters that a common folder must save.
const WORTH: usize = 160;

/// Returns the folder that a summary's paths are relative to, with a slash at its end.
#[must_use]
pub fn base_folder(summary: &str) -> Option<&str> {
    let (folder, _) = summary.lines().find_map(named)?.split_once('`')?;
    folder.ends_with('/').then_some(folder)
}

/// Whether a line of a summary names its folder.
#[must_use]
pub fn names_base_folder(line: &str) -> bool {
    named(line).is_some()
}

fn named(line: &str) -> Option<&str> {
    line.trim_start_matches("- ").strip_prefix(LEAD)
}

/// Makes the paths of a summary relative to the folder `known`, or to the one that saves most. The
/// first line then names the folder. The summary is unchanged if that saves little.
#[must_use]
pub fn with_relative_paths(summary: &str, known: Option<&str>) -> String {
    let Some(folder) = known.map(str::to_owned).or_else(|| common_folder(summary)) else {
        return summary.to_owned();
    };
    format!("{LEAD}{folder}`.\n\n{}", summary.replace(&folder, ""))
}

fn common_folder(summary: &str) -> Option<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for span in spans(summary).iter().filter(|span| span.kind == SpanKind::Path) {
        let slashes = span.text.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
        let slashes: Vec<usize> = slashes.filter(|_| span.text.starts_with('/')).take(24).collect();
        // A file keeps the name of its own folder.
        for &at in slashes.iter().rev().skip(1) {
            *counts.entry(span.text.get(..=at)?).or_default() += 1;
        }
    }
    let saved = |folder: &str, count: usize| {
        (folder.len() * count).saturating_sub(folder.len() + LEAD.len())
    };
    let best = counts.into_iter().max_by_key(|&(folder, count)| (saved(folder, count), folder))?;
    (saved(best.0, best.1) >= WORTH).then(|| best.0.to_owned())
}
