//! Ranks snippets of several sources.

use ctx_core::{Passage, Snippet, SnippetSource};

/// Sorts snippets by score, but puts the agent's notes before snippets of sessions. If a snippet of
/// a session would come before a note, the two swap places; files keep theirs. (The original
/// system's rule compares pairs only, which is not a consistent order for three sources.)
#[must_use]
pub fn rank(mut snippets: Vec<Snippet>) -> Vec<Snippet> {
    snippets.sort_by(|a, b| b.score.total_cmp(&a.score));
    let is_file = |snippet: &Snippet| snippet.source == SnippetSource::Files;
    let mut others: Vec<Snippet> =
        snippets.iter().filter(|snippet| !is_file(snippet)).cloned().collect();
    // The sort is stable: each group stays sorted by score.
    others.sort_by_key(|snippet| snippet.source == SnippetSource::Sessions);
    let mut others = others.into_iter();
    for snippet in &mut snippets {
        if !is_file(snippet)
            && let Some(other) = others.next()
        {
            *snippet = other;
        }
    }
    snippets
}

/// Converts recalled passages to snippets of sessions.
#[must_use]
pub fn sessions(passages: Vec<Passage>) -> Vec<Snippet> {
    passages
        .into_iter()
        .map(|passage| {
            let lines = passage.text.lines().count().max(1);
            let entry = passage.entry.map_or("unknown".to_owned(), |entry| entry.to_string());
            Snippet {
                source: SnippetSource::Sessions,
                path: format!("sessions/{entry}"),
                first_line: 1,
                last_line: u32::try_from(lines).unwrap_or(u32::MAX),
                text: passage.text,
                score: passage.score,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(source: SnippetSource, score: f32) -> Snippet {
        Snippet {
            source,
            path: format!("{source:?} {score}").to_lowercase(),
            first_line: 1,
            last_line: 1,
            text: String::new(),
            score,
        }
    }

    #[test]
    fn notes_rank_before_sessions_and_files_rank_by_their_score() {
        use SnippetSource::{Files, Memory, Sessions};
        let ranked = rank(vec![
            snippet(Memory, 0.1),
            snippet(Files, 0.5),
            snippet(Sessions, 0.9),
            snippet(Sessions, 0.2),
            snippet(Memory, 0.3),
            snippet(Files, 0.95),
        ]);
        let paths: Vec<&str> = ranked.iter().map(|snippet| snippet.path.as_str()).collect();
        assert_eq!(
            paths,
            ["files 0.95", "memory 0.3", "files 0.5", "memory 0.1", "sessions 0.9", "sessions 0.2"]
        );
        assert_eq!(rank(Vec::new()), []);
    }
}
