//! What was said, searched by hand.

use ctx_core::{Result, Role, Timestamp};
use ctx_memory::{Hit, Memory, Parts, Query, Segment, SegmentId};
use ctx_session::key::FileId;
use serde::Serialize;

use super::Lookup;

/// What is to be searched.
#[derive(Clone, Debug, Default)]
pub struct SearchAsked<'a> {
    /// The words.
    pub query: &'a str,
    /// Only what was said in this session, as it stands in memory.
    pub session: Option<&'a str>,
    /// At most so many hits.
    pub limit: usize,
    /// Whether each hit says what its score is made of.
    pub explain: bool,
    /// What time it is.
    pub now: Timestamp,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Searched {
    /// Whose memory it is.
    pub agent: String,
    /// The words.
    pub query: String,
    /// The session that was searched; null where all were.
    pub session: Option<String>,
    /// What fits, best first.
    pub hits: Vec<SearchHit>,
    /// What a person should be told.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A segment that fits.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The segment.
    pub segment: SegmentId,
    /// The session it was said in.
    pub session: String,
    /// The message it is of.
    pub entry: Option<String>,
    /// Who said it.
    pub role: Role,
    /// When.
    pub timestamp: Timestamp,
    /// Its size.
    pub tokens: u32,
    /// How well it fits.
    pub score: f32,
    /// What the score is made of, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// What was said.
    pub text: String,
}

impl Lookup {
    /// The segments that fit best.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub async fn search(&self, asked: &SearchAsked<'_>) -> Result<Searched> {
        search(&self.memory, &self.agent, asked).await
    }
}

/// The segments of an agent's memory that fit best.
///
/// # Errors
///
/// Where the archive cannot be read.
pub async fn search(memory: &Memory, agent: &FileId, asked: &SearchAsked<'_>) -> Result<Searched> {
    let mut warnings = Vec::new();
    let vector = memory.vector_of(asked.query).await.unwrap_or_else(|error| {
        warnings.push(format!("words alone decide: {error}"));
        None
    });
    let SearchAsked { query: text, session, limit, now, .. } = *asked;
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
            parts: asked.explain.then_some(parts),
            text: content,
        })
    });
    let hits = found.collect();
    warnings.extend(memory.take_warnings());
    Ok(Searched {
        agent: agent.to_string(),
        query: text.to_owned(),
        session: session.map(str::to_owned),
        hits,
        warnings,
    })
}
