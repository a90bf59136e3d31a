//! Recalls passages and facts for a query.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use ctx_core::{Passage, RecallRequest, RecalledFact, Recollection, Result, Role};

use super::excerpt::{BestPiece, Reading, ends, excerpt};
use super::session::Shared;
use crate::facts::{FactHit, FactQuery};
use ctx_search::search::fit;
use ctx_search::{Hit, Query, Segment, SegmentId, spawn_blocking};

/// The number of best hits that determine how well a query fits.
const JUDGED: usize = 8;

/// The number of additional hits searched for, because some are already visible to the model.
const SPARE: usize = 32;

/// The maximum number of hits examined.
const MOST_HITS: usize = 1_000;

/// A hit that is not visible to the model, and its best piece once that is known.
struct RecallCandidate {
    hit: Hit,
    segment: Segment,
    place: Option<BestPiece>,
}

impl Shared {
    /// Returns what matches a query. Reads files and waits for locks on a separate thread.
    pub(super) async fn recall(self: &Arc<Self>, request: RecallRequest) -> Result<Recollection> {
        let mut warnings = Vec::new();
        let vector = match self.memory.vector_of(&request.query).await {
            Ok(vector) => vector,
            Err(error) => {
                warnings.push(format!("recall is lexical only: {error}"));
                None
            }
        };
        let shared = self.clone();
        let work = move || {
            // The archiving thread reports errors, and writes to disk. While it does, what other
            // processes archived may be found one recall later.
            shared.insert_queued().and_then(|()| shared.memory.refresh()).ok();
            let passages = shared.passages(&request, vector.as_deref())?;
            let facts = shared.facts(&request, &mut warnings);
            warnings.extend(shared.memory.take_warnings());
            Ok(Recollection { facts, passages, warnings })
        };
        spawn_blocking("ctx-memory-recall", work).await?
    }

    /// Returns matching passages and their neighbouring turns.
    fn passages(&self, request: &RecallRequest, vector: Option<&[f32]>) -> Result<Vec<Passage>> {
        let mut hits = self.hits(request, vector)?;
        // Age changes the order, not what is recalled.
        let best = hits.iter().map(|found| ageless(&found.hit)).fold(0.0, f32::max);
        let needs = self.memory.inner.live().index.needs(&request.query);
        let mut reading = Reading::new(&needs.terms);
        for found in hits.iter_mut().take(JUDGED) {
            found.place = Some(reading.place(&found.segment));
        }
        let fits = hits.iter().take(JUDGED).map(|found| {
            let held = found.place.as_ref().map_or(0.0, |place| place.held);
            fit(&needs, held).max(fit_of_cosine(&found.hit, self.memory.settings()))
        });
        let fits = fits.fold(0.0, f32::max);
        let score = |found: &RecallCandidate| passage_score(fits, ageless(&found.hit), best);
        hits.retain(|found| score(found) >= request.min_score);
        let hits = self.with_replies(hits, request)?;
        let mut known: HashSet<SegmentId> = hits.iter().map(|found| found.segment.id).collect();
        let mut adjacent = Vec::new();
        for found in &hits {
            let next = self.memory.neighbours(found.segment.id)?.into_iter();
            adjacent.extend(next.filter(|id| known.insert(*id)).map(|id| (id, score(found))));
        }
        let ids: Vec<SegmentId> = adjacent.iter().map(|(id, _)| *id).collect();
        let segments = self.memory.get(&ids)?.into_iter().zip(adjacent);
        let unseen = segments.filter_map(|(segment, (_, score))| {
            let segment = segment.filter(|segment| !is_visible(request, segment))?;
            let content = ends(&segment.content);
            Some(passage(Segment { content, ..segment }, score, true))
        });
        let adjacent: Vec<Passage> = unseen.collect();
        let passages = hits.into_iter().map(|found| {
            let score = score(&found);
            let RecallCandidate { segment, place, .. } = found;
            let content = excerpt(&segment.content, || match place {
                Some(place) => place,
                None => reading.place(&segment),
            });
            passage(Segment { content, ..segment }, score, false)
        });
        Ok(passages.chain(adjacent).collect())
    }

    /// Adds the reply after each hit that is a question, with the same score.
    fn with_replies(
        &self,
        hits: Vec<RecallCandidate>,
        request: &RecallRequest,
    ) -> Result<Vec<RecallCandidate>> {
        let mut given: HashSet<SegmentId> = HashSet::new();
        let mut all = Vec::with_capacity(hits.len());
        for found in hits {
            if !given.insert(found.segment.id) {
                continue;
            }
            let (hit, is_asked) = (found.hit.clone(), is_question(&found.segment));
            all.push(found);
            let reply = if is_asked { self.memory.reply(hit.id)? } else { None };
            let is_new = |reply: &Segment| !is_visible(request, reply) && given.insert(reply.id);
            all.extend(reply.filter(is_new).map(|segment| RecallCandidate {
                hit,
                segment,
                place: None,
            }));
        }
        Ok(all)
    }

    /// Returns the best hits that are not visible to the model. Reads no more of them than needed.
    fn hits(
        &self,
        request: &RecallRequest,
        vector: Option<&[f32]>,
    ) -> Result<Vec<RecallCandidate>> {
        let mut limit = request.passages.saturating_add(SPARE).min(MOST_HITS);
        let mut visible = HashSet::new();
        loop {
            let session = (!self.cross_session).then_some(self.session.as_str());
            let query = Query { text: &request.query, session, limit, now: request.now };
            let mut hits = self.memory.search(&query, vector)?;
            let is_last = hits.len() < limit || limit == MOST_HITS;
            hits.retain(|hit| !visible.contains(&hit.id));
            let (mut found, mut hits) = (Vec::new(), hits.into_iter());
            while found.len() < request.passages && hits.len() > 0 {
                let some: Vec<_> = hits.by_ref().take(request.passages - found.len()).collect();
                let ids: Vec<_> = some.iter().map(|hit| hit.id).collect();
                for (hit, segment) in some.into_iter().zip(self.memory.get(&ids)?) {
                    match segment {
                        Some(segment) if is_visible(request, &segment) => {
                            visible.insert(segment.id);
                        }
                        Some(segment) => found.push(RecallCandidate { hit, segment, place: None }),
                        None => {}
                    }
                }
            }
            if found.len() >= request.passages || is_last {
                return Ok(found);
            }
            limit = limit.saturating_mul(4).min(MOST_HITS);
        }
    }

    fn facts(&self, request: &RecallRequest, warnings: &mut Vec<String>) -> Vec<RecalledFact> {
        let Some(facts) = &self.facts else { return Vec::new() };
        let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = facts.refresh() {
            warnings.push(format!("facts may be outdated: {error}"));
        }
        let query = FactQuery {
            session: (!self.cross_session).then_some(self.session.as_str()),
            limit: request.facts,
            ..FactQuery::new(&request.query)
        };
        let recalled = |hit: FactHit<'_>| RecalledFact {
            kind: hit.fact.kind.name().to_owned(),
            text: hit.fact.content.clone(),
            score: hit.score,
            entries: hit.fact.source_entry_ids.iter().map(|id| id.as_str().into()).collect(),
        };
        facts.search(&query).into_iter().map(recalled).collect()
    }
}

/// Whether a user asks something: a sentence ends with a question mark.
fn is_question(segment: &Segment) -> bool {
    let ends = |part: &str| part.is_empty() || part.starts_with(char::is_whitespace);
    segment.role == Role::User
        && (segment.content.contains('？') || segment.content.split('?').skip(1).any(ends))
}

fn is_visible(request: &RecallRequest, segment: &Segment) -> bool {
    segment.entry_id.as_deref().is_some_and(|id| request.visible.contains(id))
}

/// Returns the search score before decay by age.
fn ageless(hit: &Hit) -> f32 {
    if hit.parts.decay > 0.0 { hit.score / hit.parts.decay } else { 0.0 }
}

/// Returns the score of a passage: the fit of the best passage, times the square root of this
/// passage's search score relative to the best. If the best passage fits perfectly, a passage with
/// half of its search score still reaches the default threshold of 0.7.
fn passage_score(fits: f32, score: f32, best: f32) -> f32 {
    let share = if best > 0.0 { (score / best).clamp(0.0, 1.0) } else { 0.0 };
    fits * share.sqrt()
}

/// The cosine that counts as a fit of 0.7: for the supported models, the lowest cosine of texts
/// with the same meaning.
const NEAR: f32 = 0.45;

/// Returns the fit of a hit according to its cosine, for a model's vectors; 0 for hash vectors,
/// whose cosines do not measure meaning.
fn fit_of_cosine(hit: &Hit, settings: &super::MemorySettings) -> f32 {
    let counts = matches!(settings.vectors, super::Vectors::Model(_)) && settings.weight() > 0.0;
    if !counts || !hit.parts.cosine.is_finite() {
        return 0.0;
    }
    let nearness = (hit.parts.cosine.max(0.0) / NEAR).powi(2);
    1.0 - 0.3f32.powf(nearness)
}

fn passage(segment: Segment, score: f32, adjacent: bool) -> Passage {
    Passage {
        text: segment.content,
        score,
        role: segment.role,
        timestamp: segment.timestamp,
        session: Some(segment.session_id),
        entry: segment.entry_id.map(Into::into),
        adjacent,
    }
}
