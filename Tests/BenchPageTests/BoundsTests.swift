// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues
import Testing

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct BoundsTests {
  private func order(_ text: String) throws -> PortalOrder {
    try PortalOrder(try #require(JSONValue(parsing: Array(text.utf8))))
  }

  @Test("A page can start what the bench has types for") func orders() throws {
    #expect(try order(#"{"type":"login","message":"x"}"#).digits == nil)
    #expect(try order(#"{"type":"number","message":"Number 42?","digits":"42"}"#).digits == "42")
    let longest = String(repeating: "é", count: 155)
    #expect(try order(#"{"type":"payment","message":"\#(longest)"}"#).message == longest)
  }

  @Test(
    "Other orders are refused",
    arguments: [
      "{}", #"{"type":"transfer","message":"x"}"#, #"{"type":"login"}"#, #"{"type":"login","message":""}"#,
      #"{"type":"login","message":"x","digits":"1"}"#, #"{"type":"number","message":"x"}"#,
      #"{"type":"number","message":"x","digits":""}"#, #"{"type":"number","message":"x","digits":"123456789"}"#,
      #"{"type":"number","message":"x","digits":"1a"}"#,
      #"{"type":"login","message":"\#(String(repeating: "é", count: 156))"}"#, #"{"type":1,"message":"x"}"#,
      #"{"type":"login","message":"x","digits":42}"#, #"{"type":"login","message":"x","digits":null}"#,
    ])
  func otherOrders(text: String) { #expect(throws: BenchError.self) { try order(text) } }

  @Test("A token server that was running already has its own types") func otherTypes() throws {
    let body = try #require(JSONValue(parsing: Array(#"{"type":"transfer","message":"x"}"#.utf8)))
    #expect(try PortalOrder(body, types: ["transfer"]).type == "transfer")
    #expect(throws: BenchError.self) { try PortalOrder(body, types: ["login"]) }
  }

  @Test("A page can do at a reader what it has buttons for") func readers() throws {
    func act(_ name: JSONValue) throws -> ReaderAct { try ReaderAct(.object(["act": name])) }
    #expect(try act(.text("finger")).answer == .finger("index") && act(.text("badge")).answer == .badge("red"))
    #expect(try act(.text("other-finger")).answer != act(.text("finger")).answer)
    for name: JSONValue in [.text(""), .text("finger "), .text("data"), .integer(1), .null] {
      #expect(throws: BenchError.self) { try act(name) }
    }
  }

  @Test(
    "A member that is missing or has another form is refused, with what is wrong",
    arguments: [
      ("keypad", #"{"token":"1","keys":["1"]}"#, #""token" is not a whole number"#),
      ("keypad", #"{"token":null,"keys":["1"]}"#, #""token" is not a whole number"#),
      ("keypad", #"{"token":2,"keys":["1"]}"#, "there is no such token"),
      ("keypad", #"{"token":-1,"keys":["1"]}"#, "there is no such token"),
      ("keypad", "{}", #""keys" is missing"#),
      ("keypad", #"{"keys":["1",2]}"#, #""keys" is not a list of 1 to 16 texts"#),
      ("keypad", #"{"keys":[]}"#, #""keys" is not a list of 1 to 16 texts"#),
      ("keypad", #"{"keys":"1"}"#, #""keys" is not a list of 1 to 16 texts"#),
      ("chip", "{}", #""connected" is missing"#),
      ("chip", #"{"connected":1}"#, #""connected" is not true or false"#),
      ("button/beat", #"{"press":"1"}"#, #""press" is not a whole number"#),
      ("button/release", #"{"press":1,"held_ms":1.5}"#, #""held_ms" is not a whole number"#),
      ("button/press", #"{"button":1}"#, #""button" is not a text"#),
    ])
  func forms(path: String, text: String, why: String) async throws {
    let plan = Bench.Plan(programs: "/none", folder: "/none", users: ["alice", "bob"])
    let call = try #require(Bench(plan).calls[path])
    let body = try #require(JSONValue(parsing: Array(text.utf8)))
    let error = await #expect(throws: BenchError.self) { _ = try await call(body) }
    #expect(error?.description == why)
  }

  @Test("A page that is loaded again reads what it has missed, once, and the latest state") func feed() async throws {
    let feed = Feed()
    for number in 1...(Feed.mostKept + 10) { feed.publish(.portal, .integer(Int64(number))) }
    feed.publish(.board, .text("old"))
    feed.publish(.board, .text("new"))
    let page = try #require(feed.entries(after: 400))
    page.cancel()
    var numbers: [Int] = []
    for await frame in page.frames { numbers.append(frame.number) }
    #expect(numbers == [412] + Array(401...410))
    let other = try #require(feed.entries(after: 0))
    other.cancel()
    var texts: [String] = []
    for await frame in other.frames { texts.append(frame.text) }
    #expect(texts.count == Feed.mostKept + 1 && texts.first?.contains("new") == true)
  }

  @Test("The number of pages is limited, and a page that ends makes room for another") func pages() throws {
    let feed = Feed()
    let pages = (0..<Feed.mostPages).compactMap { _ in feed.entries(after: 0) }
    #expect(pages.count == Feed.mostPages && feed.entries(after: 0) == nil)
    pages[3].cancel()
    #expect(feed.entries(after: 0) != nil)
    feed.close()
    #expect(feed.entries(after: 0) == nil)
  }

  @Test("A new page reads the latest state of each token") func tokens() async throws {
    let feed = Feed()
    for (token, text) in [(0, "a"), (1, "b"), (0, "c")] { feed.publish(.board, .text(text), of: token) }
    let page = try #require(feed.entries(after: 0))
    page.cancel()
    var texts: [String] = []
    for await frame in page.frames { texts.append(frame.text) }
    #expect(texts.count == 2)
    #expect(texts[0].contains(#""token":1,"value":"b""#) && texts[1].contains(#""token":0,"value":"c""#))
  }

  @Test("An entry is one line, whatever it says") func oneLine() async throws {
    let feed = Feed()
    feed.publish(.token, .text("a\n\ndata: b\r\u{2028}"))
    let page = try #require(feed.entries(after: 0))
    page.cancel()
    for await frame in page.frames {
      #expect(frame.text.split(separator: "\n", omittingEmptySubsequences: false).count == 4)
      #expect(!frame.text.contains("\r"))
    }
  }

  @Test("The result of a request is read until it has expired, but for no longer than a day") func watching() {
    #expect(BenchToken.watchTime(8_000) == .seconds(11))
    #expect(BenchToken.watchTime(86_400_000) == .seconds(86_403))
    #expect(BenchToken.watchTime(.max) == .seconds(86_403))
    #expect(BenchToken.watchTime(.min) == .seconds(3))
  }

  @Test("Words of a command line are quoted for the shell") func quoting() {
    #expect("user_id=alice".shellQuoted == "user_id=alice")
    #expect("a b".shellQuoted == "'a b'")
    #expect("it's $HOME".shellQuoted == #"'it'\''s $HOME'"#)
    #expect("".shellQuoted == "''")
    // With a combining mark, an apostrophe is another `Character`; a shell reads bytes.
    #expect(Array("a'\u{301};id".shellQuoted.utf8) == Array("'a'\\''\u{301};id'".utf8))
  }
}
