//! Searches a folder.

use std::collections::HashMap;
use std::ops::Range;

use ctx_core::{Result, Snippet, SnippetSource};

use crate::chunk::{LineRange, ranges};
use crate::index::{SearchState, Workspace};
use crate::list::FileRow;
use crate::read::{Content, read};
use ctx_search::lexical::{Bm25, Postings, Scores, score};
use ctx_search::near::Direction;
use ctx_search::search::{Fusion, fuse, min_max, terms_of};
use ctx_search::vectors::Embedding;

/// The constants of [`ctx_search::SearchSettings`]: chunks are of similar length, and a shorter
/// chunk is not better.
const BM25: Bm25 = Bm25 { k1: 1.2, b: 0.4 };

/// Paths are short, and a match in a long path means less.
const NAMES: Bm25 = Bm25 { k1: 1.2, b: 0.75 };

/// If files have changed, further results are examined, up to this many times the limit.
const TRIES: usize = 4;

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceMatches {
    /// Matching snippets, best first.
    pub snippets: Vec<Snippet>,
    /// The number of matches in files that have changed since.
    pub stale: usize,
}

impl Workspace {
    /// Returns the chunks that match a question best. `vector` is the question's vector, with its
    /// embedder; without it, the score is lexical. Files are read again, and changed files are
    /// skipped.
    ///
    /// # Errors
    ///
    /// If the index exists and cannot be read. Without an index, nothing is found.
    pub fn search(
        &self,
        question: &str,
        limit: usize,
        vector: Option<(&Embedding, &[f32])>,
    ) -> Result<WorkspaceMatches> {
        let mut guard = self.state()?;
        let Some(state) = guard.as_mut() else { return Ok(WorkspaceMatches::default()) };
        let scores = self.scores(state, question, vector);
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.retain(|row| scores[*row as usize] > 0.0);
        order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));
        let mut found = WorkspaceMatches::default();
        let mut read = HashMap::new();
        for row in order.into_iter().take(limit.saturating_mul(TRIES)) {
            if found.snippets.len() >= limit {
                break;
            }
            match self.snippet(state, row, scores[row as usize], &mut read) {
                Some(snippet) => found.snippets.push(snippet),
                None => found.stale += 1,
            }
        }
        Ok(found)
    }

    /// Returns the score of each chunk: 0 to 1.
    fn scores(
        &self,
        state: &mut SearchState,
        question: &str,
        vector: Option<(&Embedding, &[f32])>,
    ) -> Vec<f32> {
        let mut lexical = vec![0f32; state.rows.len()];
        if let Some(snapshot) = &state.snapshot {
            let terms = terms_of(question);
            score(&terms, &[snapshot as &dyn Postings], BM25, &mut lexical);
            // A file whose path matches ranks before a file that happens to share words.
            let mut names = vec![0f32; state.rows.files().len()];
            score(&terms, &[state.rows.names() as &dyn Postings], NAMES, &mut names);
            for (row, score) in (0u32..).zip(&mut lexical).filter(|(_, score)| **score > 0.0) {
                let file = state.rows.file_of(row);
                *score += file.and_then(|file| names.get(file)).copied().unwrap_or_default();
            }
        }
        let best = lexical.iter().copied().fold(0.0, f32::max);
        if best > 0.0 {
            lexical.iter_mut().for_each(|score| *score /= best);
        }
        let Some((embedding, vector)) = vector else { return lexical };
        let Some(direction) = Direction::of(vector) else { return lexical };
        let Some(vectors) = self.vectors(state, embedding) else { return lexical };
        if vectors.count() == 0 || vectors.dimensions() != vector.len() {
            return lexical;
        }
        let mut known = Scores::default();
        known.reset(lexical.len());
        vectors.all(&direction, &mut known);
        let mut cosines = vec![f32::NAN; lexical.len()];
        known.drain(|row, cosine| cosines[row as usize] = cosine);
        let has_none: Vec<bool> = cosines.iter().map(|cosine| cosine.is_nan()).collect();
        min_max(&mut cosines);
        let mut fused = fuse(Fusion::Weighted, &lexical, &cosines, self.settings.vector_weight);
        // A folder is embedded gradually: chunks without a vector are scored by words alone.
        for (row, _) in has_none.iter().enumerate().filter(|(_, has_none)| **has_none) {
            fused[row] = lexical[row];
        }
        fused
    }

    /// Reads a chunk from its file, if the file is unchanged.
    fn snippet(
        &self,
        state: &SearchState,
        row: u32,
        score: f32,
        read: &mut HashMap<String, Option<Chunked>>,
    ) -> Option<Snippet> {
        let (file, nth) = state.rows.chunk(row)?;
        let chunked =
            read.entry(file.path.clone()).or_insert_with(|| self.chunked(file)).as_ref()?;
        let (lines, at) = chunked.chunks.get(nth as usize)?;
        Some(Snippet {
            source: source_of(&file.path),
            path: file.path.clone(),
            first_line: lines.0,
            last_line: lines.1,
            text: chunked.text.get(at.clone())?.to_owned(),
            score,
        })
    }

    /// Reads a file and its chunks, if it is unchanged.
    fn chunked(&self, file: &FileRow) -> Option<Chunked> {
        let text = match read(&self.folder, &file.path, self.settings.largest_file) {
            Content::Text(text) if text.hash == file.hash => text.text,
            _ => return None,
        };
        let chunks = ranges(&text, self.settings.chunk, &self.settings.counter);
        Some(Chunked { text, chunks })
    }
}

/// A file that was read again. It is split once for all of its matching chunks.
struct Chunked {
    text: String,
    chunks: Vec<(LineRange, Range<usize>)>,
}

/// `MEMORY.md` and `memory/*.md` are the agent's own notes.
fn source_of(path: &str) -> SnippetSource {
    let of_folder = path
        .strip_prefix("memory/")
        .is_some_and(|name| !name.contains('/') && name.ends_with(".md"));
    match of_folder || path == "MEMORY.md" {
        true => SnippetSource::Memory,
        false => SnippetSource::Files,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_the_agent_are_recognised_by_their_path() {
        for (path, is_memory) in [
            ("MEMORY.md", true),
            ("memory/2026-02-10.md", true),
            ("memory/a/b.md", false),
            ("memory/a.txt", false),
            ("docs/memory/a.md", false),
            ("docs/MEMORY.md", false),
        ] {
            assert_eq!(source_of(path) == SnippetSource::Memory, is_memory, "{path}");
        }
    }
}
