//! Explicit search of the archive.

use ctx_core::{Result, Role, Timestamp};
use ctx_memory::Memory;
use ctx_search::{Hit, Query, ScoreParts, Segment, SegmentId};
use ctx_session::key::FileId;
use serde::Serialize;

use super::Lookup;

/// A search query.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery<'a> {
    /// The words.
    pub query: &'a str,
    /// Limits the search to this session, by its name in memory.
    pub session: Option<&'a str>,
    /// Maximum number of hits.
    pub limit: usize,
    /// Whether each hit explains its score.
    pub explain: bool,
    /// The current time.
    pub now: Timestamp,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchReport {
    /// The agent.
    pub agent: String,
    /// The words.
    pub query: String,
    /// The session that was searched; null if all were.
    pub session: Option<String>,
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// Warnings for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A matching segment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The segment.
    pub segment: SegmentId,
    /// Its session.
    pub session: String,
    /// Its entry.
    pub entry: Option<String>,
    /// The role of its author.
    pub role: Role,
    /// Its time.
    pub timestamp: Timestamp,
    /// Its size.
    pub tokens: u32,
    /// Its score.
    pub score: f32,
    /// The components of the score, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<ScoreParts>,
    /// Its text.
    pub text: String,
}

impl Lookup {
    /// Returns the segments with the highest scores.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub async fn search(&self, query: &SearchQuery<'_>) -> Result<SearchReport> {
        search(&self.memory, &self.agent, query).await
    }
}

/// Returns the segments of an agent's memory with the highest scores.
///
/// # Errors
///
/// If the archive cannot be read.
pub async fn search(
    memory: &Memory,
    agent: &FileId,
    query: &SearchQuery<'_>,
) -> Result<SearchReport> {
    let mut warnings = Vec::new();
    let vector = memory.vector_of(query.query).await.unwrap_or_else(|error| {
        warnings.push(format!("searching by words only, without vectors: {error}"));
        None
    });
    let SearchQuery { query: text, session, limit, now, .. } = *query;
    let hits = memory.search(&Query { text, session, limit, now }, vector.as_deref())?;
    let ids: Vec<SegmentId> = hits.iter().map(|hit| hit.id).collect();
    let segments = memory.get(&ids)?;
    let found = hits.into_iter().zip(segments).filter_map(|(hit, segment)| {
        let Hit { id, score, parts } = hit;
        let Segment { session_id, timestamp, role, content, tokens, entry_id, .. } = segment?;
        Some(SearchHit {
            segment: id,
            session: session_id,
            entry: entry_id,
            role,
            timestamp,
            tokens,
            score,
            parts: query.explain.then_some(parts),
            text: content,
        })
    });
    let hits = found.collect();
    warnings.extend(memory.take_warnings());
    Ok(SearchReport {
        agent: agent.to_string(),
        query: text.to_owned(),
        session: session.map(str::to_owned),
        hits,
        warnings,
    })
}
