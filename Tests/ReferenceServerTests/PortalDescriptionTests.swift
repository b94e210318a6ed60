// SPDX-License-Identifier: Apache-2.0
import Foundation
import Hummingbird
import JSONSchema
import JSONValues
import Logging
import Secrets
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// The OpenAPI description of the portal API against its routes and parsers. The responses of all tests in
/// PortalConformance are compared with it, too.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PortalDescriptionTests {
  private struct NoExpiry: ExpirySchedule {
    func expect(at time: Timestamp) {}
  }

  private struct NoScripts: ScriptRunner {
    func run(_ call: ScriptCall, of authenticator: ServerConfiguration.Authenticator) async -> ScriptResult? { nil }
    func canRun(_ authenticator: ServerConfiguration.Authenticator) -> Bool { false }
  }

  private struct NoPropertiesError: Error {}

  private let description: OpenAPIDescription

  init() throws { description = try OpenAPIDescription() }

  @Test("Each route of the portal API is described, and each description has a route") func routes() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "description-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store(path: folder.path + "/token-server.db")
    defer { store.close() }
    let hub = EventHub()
    let interfaces = HTTPInterfaces(
      store: store, hasher: KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32))),
      configuration: ServerConfiguration(), origin: Origin(), clock: .system,
      announcer: ServerAnnouncer(hub: hub, callbacks: AsyncSignal(), log: Logger(label: "test")), hub: hub,
      expiry: NoExpiry(), mailboxes: nil, scripts: NoScripts())
    let routes = interfaces.router().routes.filter { "\($0.path)".hasPrefix("/oauth/api/") }.map(\.description)
    #expect(Set(routes) == description.operations)
  }

  private static let values = [
    "type": "login", "user_id": "alice", "device_id": "D1", "app_id": "approval-token",
    "callback_uri": "https://portal.example/finished", "message": "Pay 12?", "secure_message": "Pay 12 euros?",
    "language_code": "en", "read_back": "12", "client_id": "portal", "client_secret": "s",
  ]

  /// The error of the parser of a start, with these values.
  private func parse(_ values: [String: String], _ version: PortalVersion) -> StartRequest.ParseError? {
    var configuration = ServerConfiguration()
    configuration.types = ["login", "number"].map { .init(name: $0, messages: ["en": "12?"]) }
    configuration.types[1].readsBack = true
    let form = values.map { "\($0)=\($1.replacing(" ", with: "+"))" }.joined(separator: "&")
    do {
      _ = try StartRequest(Form(parsing: Array(form.utf8)), of: "portal", version, configuration)
      return nil
    } catch { return error as? StartRequest.ParseError ?? .unknownType }
  }

  @Test("A start needs the parameters that are described as required, and no other", arguments: PortalVersion.allCases)
  func parameters(version: PortalVersion) throws {
    let described = try description.body(
      of: "POST", "/oauth/api/\(version)/authenticate/user", type: "application/x-www-form-urlencoded")
    let body = try #require(described)
    let required = (body["required"]?.list ?? []).compactMap(\.text)
    #expect(required.count == 4)
    guard case .object(let properties) = body["properties"] else { throw NoPropertiesError() }
    let least = Self.values.filter { required.contains($0.key) }
    #expect(parse(least, version) == nil)
    for name in required {
      #expect(parse(least.filter { $0.key != name }, version) == .badParameter("\"\(name)\" is missing."))
    }
    // All parameters; `read_back` is only for types that want it.
    let all = Self.values.filter { properties.keys.contains($0.key) }
    #expect(all.count == properties.count)
    #expect(parse(all.merging(["type": "number"]) { $1 }, version) == nil)
    #expect(parse(all, version) == .badParameter("\"read_back\" is not for this type."))
    let number = least.merging(["type": "number"]) { $1 }
    #expect(parse(number, version) == .badParameter("\"read_back\" is missing."))
    #expect(parse(number.merging(["read_back": "12"]) { $1 }, version) == nil)
  }

  @Test("The bounds of parameters are those of the parser") func bounds() throws {
    let schema = try description.schema(named: "StartOnDevice")
    let properties = try #require(schema["properties"])
    let largest = Int64(StartRequest.maxSecureMessageBytes)
    #expect(properties["secure_message"]?["maxLength"] == .integer(largest))
    #expect(properties["read_back"]?["pattern"] == .text("^[0-9]{1,\(StartRequest.mostReadBackDigits)}$"))
  }

  @Test("The server describes its API, with its address, without credentials") func served() throws {
    let server = try TokenServerProcess()
    let reply = try server.curl(server.url + PortalDescription.path).expect(200)
    let served = try #require(JSONValue(parsing: reply.body))
    #expect(served["servers"] == .list([.object(["url": .text(server.url)])]))
    #expect(served["paths"] == description.root["paths"] && served["components"] == description.root["components"])
  }
}
