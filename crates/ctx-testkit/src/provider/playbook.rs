//! Selects the step for a request.

use std::sync::{Arc, Mutex};

use ctx_core::Usage;

use super::api::Api;
use super::cache::PromptCache;
use super::request::Request;
use super::script::{Reply, When};
use super::step::Step;
use crate::locked;

/// A function that answers requests.
pub(super) type Respond = Arc<dyn Fn(&Request) -> Step + Send + Sync>;

/// The remaining steps, and what follows them.
pub(super) struct Playbook {
    state: Mutex<PlaybookState>,
    respond: Option<Respond>,
}

#[derive(Default)]
struct PlaybookState {
    steps: Vec<Step>,
    cache: PromptCache,
}

impl Playbook {
    pub(super) fn new(steps: Vec<Step>, respond: Option<Respond>) -> Self {
        let state = PlaybookState { steps, cache: PromptCache::default() };
        Self { state: Mutex::new(state), respond }
    }

    /// Adds steps.
    pub(super) fn extend(&self, steps: impl IntoIterator<Item = Step>) {
        locked(&self.state).steps.extend(steps);
    }

    /// Returns the number of requests that the remaining steps cover; unlimited steps are not
    /// counted.
    pub(super) fn left(&self) -> usize {
        let state = locked(&self.state);
        state.steps.iter().filter_map(|step| step.times).map(|n| n as usize).sum()
    }

    /// Returns the step for a request: the first matching one of the script, otherwise the
    /// function's, otherwise a summary.
    pub(super) fn step(&self, request: &Request, api: Api) -> Step {
        let fits = |step: &Step| step.times != Some(0) && step.when.holds(request, api);
        let mut state = locked(&self.state);
        if let Some(step) = state.steps.iter_mut().find(|step| fits(step)) {
            let taken = step.clone();
            step.times = step.times.map(|n| n.saturating_sub(1));
            state.steps.retain(|step| step.times != Some(0));
            return taken;
        }
        drop(state);
        match &self.respond {
            Some(respond) if api.is_completion() => respond(request),
            _ => Step::new(Reply::Summary),
        }
    }

    /// Returns the usage of the prompt: the part that was sent before is read from the cache.
    /// Anthropic caches only if the request asks for it, and charges for writing.
    pub(super) fn charge(&self, request: &Request, api: Api) -> Usage {
        let whole = request.prompt.tokens();
        let flat = request.prompt.flat();
        let mut state = locked(&self.state);
        let shared = state.cache.shared(request.model(), &flat);
        let share = shared as f64 / flat.len().max(1) as f64;
        state.cache.keep(request.model(), flat);
        let read = ((whole as f64 * share) as u64).min(whole);
        let fresh = Usage { input: whole, ..Usage::default() };
        if !api.is_anthropic() {
            return Usage { input: whole - read, cache_read: read, ..fresh };
        }
        let marked = request.body.windows(MARK.len()).any(|part| part == MARK);
        match marked {
            true => Usage { input: 0, cache_read: read, cache_write: whole - read, ..fresh },
            false => fresh,
        }
    }
}

const MARK: &[u8] = b"\"cache_control\"";

/// Whether `part` is in the messages since the last answer of the model.
fn is_new(request: &Request, part: &str) -> bool {
    request.prompt.newest().iter().any(|(_, text)| text.contains(part))
}

impl When {
    fn holds(&self, request: &Request, api: Api) -> bool {
        let api_fits = self.api.map_or(api.is_completion(), |wanted| wanted == api);
        api_fits
            && self.model.as_ref().is_none_or(|model| model == request.model())
            && self.stream.is_none_or(|stream| stream == request.stream())
            && self.contains.as_ref().is_none_or(|part| request.prompt.text().contains(part))
            && self.newest.as_ref().is_none_or(|part| is_new(request, part))
            && self.after_tool.is_none_or(|after| after == request.prompt.is_after_tool())
            && self.tool.as_ref().is_none_or(|tool| request.prompt.tools.contains(tool))
    }
}
