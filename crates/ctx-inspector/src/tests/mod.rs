//! The API over sessions of a home, files and records of the proxy.

mod asked;
mod guarded;
mod page;
mod proxied;
mod sessions;
mod undone;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use ctx_config::Config;
use ctx_core::Tokens;
use ctx_server::http::{Access, Shutdown};
use ctx_session::Home;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::replay::{ReplayOverrides, ReplaySettings, Replays};
use super::{Inspector, MemorySearch, Source};

/// A home, and a folder for other files.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> Home {
        Home::at(self.dir.path().join("home"))
    }

    /// Writes a transcript in pi's format.
    fn transcript(&self, name: &str, exchanges: usize, words: usize) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, transcript("a-session", exchanges, words)).unwrap();
        path
    }

    fn replays(&self, files: &[&Path]) -> Replays {
        let fit = ReplayOverrides { window: Some(Tokens(16_000)), ..ReplayOverrides::default() };
        let with = ReplaySettings { config: Config::default(), home: self.home(), fit };
        Replays::new(with, files.iter().map(|&file| file.to_owned()).collect(), true)
    }

    /// Returns the API over these files, and the id of the first.
    fn api(&self, files: &[&Path]) -> (Api, String) {
        let replays = self.replays(files);
        let id = replays.find(files[0].to_str().unwrap()).unwrap();
        (self.over(Arc::new(replays)), id)
    }

    /// Returns the API over a source.
    fn over(&self, source: Arc<dyn Source>) -> Api {
        let inspector = Inspector::of(vec![source], self.memory(), Shutdown::default());
        Api { router: inspector.router_alone() }
    }

    fn memory(&self) -> MemorySearch {
        MemorySearch::new(Config::default(), self.home())
    }
}

fn transcript(id: &str, exchanges: usize, words: usize) -> String {
    let mut text = json!({ "type": "session", "version": 3, "id": id, "cwd": "/" }).to_string();
    let mut parent = Value::Null;
    for n in 0..exchanges * 2 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let said = format!("message {n} {}", "word ".repeat(words));
        let id = format!("{n:08x}");
        let entry = json!({
            "type": "message",
            "id": id,
            "parentId": parent,
            "message": { "role": role, "content": [{ "type": "text", "text": said }] },
        });
        text.push('\n');
        text.push_str(&entry.to_string());
        parent = Value::from(id);
    }
    text.push('\n');
    text
}

/// Sends requests to a router as a browser would.
struct Api {
    router: Router,
}

impl Api {
    async fn ask(&self, method: Method, path: &str, access: Option<Access>) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(access) = access {
            request = request.extension(access);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Repeats the request until the session is replayed.
    async fn get(&self, path: &str) -> (StatusCode, Value) {
        loop {
            let (status, body) = self.ask(Method::GET, path, None).await;
            if status != StatusCode::ACCEPTED {
                return (status, body);
            }
            assert!(body["progress"]["total"].is_u64(), "{body}");
        }
    }

    async fn found(&self, path: &str) -> Value {
        let (status, body) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }
}
