//! rmcp's client, over a pair of pipes and over HTTP.

use ctx_server::http::{self, Shutdown};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{
    ClientLifecycleMode, RunningService, ServiceError, serve_client_with_lifecycle, serve_server,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};

use super::super::stdio::MAX_MESSAGE_BYTES;
use super::super::{PATH, routes};
use super::{KEY, home, server};

type Client = RunningService<RoleClient, ()>;

async fn called(client: &Client, name: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap();
    client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

async fn uses_everything(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["recall", "expand", "remember", "context_status", "search_sessions"]);
    let kept = called(client, "remember", json!({ "text": "the winch is oiled on Fridays" })).await;
    assert_eq!(kept.is_error, Some(false), "{kept:?}");
    let found = called(client, "recall", json!({ "query": "when is the winch oiled?" })).await;
    assert!(text(&found).contains("oiled on Fridays"), "{found:?}");
    assert_eq!(found.structured_content.as_ref().unwrap()["factsUsed"], 1);
    let read = called(client, "expand", json!({ "entry": "[e:00000007]", "session": KEY })).await;
    assert!(text(&read).contains("module 7 reads"), "{read:?}");
    let full = called(client, "context_status", json!({ "session": "s" })).await;
    assert_eq!(full.structured_content.as_ref().unwrap()["context"]["messages"], 120, "{full:?}");
    let nothing = json!({ "query": "parrot", "session": KEY });
    let nothing = called(client, "search_sessions", nothing).await;
    assert!(text(&nothing).starts_with("No matches in the archive"), "{nothing:?}");
    let listed = client.list_all_resources().await.unwrap();
    assert_eq!(listed[0].uri, format!("ctx://session/{KEY}"));
    let mut uri = Some(listed[0].uri.clone());
    let (mut pages, mut all) = (0, String::new());
    while let Some(next) = uri.take() {
        let page = client.read_resource(ReadResourceRequestParams::new(next)).await.unwrap();
        let ResourceContents::TextResourceContents { text, meta, .. } = &page.contents[0] else {
            panic!("{page:?}")
        };
        uri = meta.as_ref().and_then(|meta| Some(meta.0["next"].as_str()?.to_owned()));
        all.push_str(text);
        pages += 1;
    }
    assert!(pages > 1);
    let every = (1..=120).all(|n| all.contains(&format!("[e:{n:08x}]")));
    assert!(every, "each message is on one of the pages");
}

async fn is_refused(client: &Client) {
    let unknown = client.call_tool(CallToolRequestParams::new("../recall")).await;
    assert!(matches!(unknown, Err(ServiceError::McpError(_))), "{unknown:?}");
    for session in ["../../../etc/passwd", "", "nobody", "agent:other:main"] {
        let result = called(client, "context_status", json!({ "session": session })).await;
        assert_eq!(result.is_error, Some(true), "{session}");
        assert!(text(&result).contains("hint: "), "{result:?}");
    }
    let cursor = PaginatedRequestParams::default().with_cursor(Some("x".into()));
    assert!(client.list_resources(Some(cursor)).await.is_err());
    let uri = ReadResourceRequestParams::new("ctx://session/..%2f..%2fetc%2fpasswd");
    assert!(client.read_resource(uri).await.is_err());
}

#[tokio::test]
async fn a_client_over_pipes_uses_everything_in_both_revisions() {
    for version in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
        let home = home();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(serve_server(server(home.path()), ours));
        let lifecycle = match version.has_initialize() {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Discover { preferred_versions: vec![version] },
        };
        let client = serve_client_with_lifecycle((), theirs, lifecycle).await.unwrap();
        uses_everything(&client).await;
        is_refused(&client).await;
        client.cancel().await.unwrap();
        server.await.unwrap().unwrap().waiting().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_over_http_uses_everything() {
    // The test's client requires a crypto provider, even without TLS; another test may have
    // installed one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let home = home();
    let address = "127.0.0.1:0".parse().unwrap();
    let bound = http::Server::new(address).bind().await.unwrap();
    let transport = StreamableHttpClientTransport::from_uri(format!("{}{PATH}", bound.url()));
    let shutdown = Shutdown::default();
    let serving = tokio::spawn(bound.serve(routes(server(home.path())), shutdown.clone()));
    let client = ().serve(transport).await.unwrap();
    uses_everything(&client).await;
    is_refused(&client).await;
    // An oversized call is refused, and the next call is answered.
    let huge = json!({ "query": "x".repeat(MAX_MESSAGE_BYTES) }).as_object().cloned().unwrap();
    let huge = CallToolRequestParams::new("recall").with_arguments(huge);
    assert!(client.call_tool(huge).await.is_err());
    uses_everything_again(&client).await;
    client.cancel().await.unwrap();
    shutdown.stop();
    serving.await.unwrap();
}

async fn uses_everything_again(client: &Client) {
    let known =
        called(client, "remember", json!({ "text": "the winch is oiled on Fridays" })).await;
    assert_eq!(known.structured_content.as_ref().unwrap()["remembered"], false);
}
