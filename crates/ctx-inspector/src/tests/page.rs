//! The page is complete and immune to transcript content.

use axum::http::header;

use super::*;
use crate::pages::parts;
use crate::pages::served::{FILES, INDEX, files};

async fn fetch(path: &str) -> (StatusCode, String, String) {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 1, 1);
    let (api, _) = place.api(&[&file]);
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let answer = api.router.oneshot(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let policy = head.headers.get(header::CONTENT_SECURITY_POLICY);
    let policy = policy.map(|policy| policy.to_str().unwrap().to_owned()).unwrap_or_default();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (head.status, policy, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_only_existing_files_of_its_own_server() {
    let (status, policy, page) = fetch("/").await;
    assert_eq!(status, StatusCode::OK);
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe") && !policy.contains('*'));
    assert_eq!(page, *INDEX);
    let named = page.split('"').filter(|text| text.starts_with("assets/"));
    for path in named {
        let (status, policy, text) = fetch(&format!("/{path}")).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(!text.is_empty() && policy.contains("default-src 'none'"), "{path}");
    }
    for path in ["/assets/nothing.js", "/assets/..%2Fmod.rs", "/assets/"] {
        assert_eq!(fetch(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn the_scripts_never_insert_text_as_markup_or_call_other_servers() {
    assert!(!INDEX.contains("<script>") && !INDEX.contains(" on") && !INDEX.contains("style="));
    assert!(files().all(|(_, text)| !text.is_empty()));
    for (name, text) in files().chain(parts().map(|text| ("parts.js", text))) {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text.contains(way), "{name}: {way}");
        }
        assert!(!text.contains("http:") && !text.contains("https:"), "{name}");
        if name.ends_with(".js") {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.rsplit_once("\"./").unwrap().1.trim_end_matches("\";");
                assert!(FILES.contains(&from), "{name} imports {from}");
            }
        }
    }
}
