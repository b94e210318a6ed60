// SPDX-License-Identifier: Apache-2.0
/// The configuration that `init` writes: the settings of a server without authenticators. Optional ones are
/// comments with their defaults.
enum ConfigurationTemplate {
  /// - Parameters:
  ///   - pin: whether users have a PIN, which the type "payment" then requires.
  ///   - database: the URL of a PostgreSQL database; nil for a file.
  static func text(pin: Bool, database: String? = nil) -> String {
    [
      server, self.database(database), mobileAuthentication, limits, application(pin: pin), mqtt, operations,
      authenticators, callbacks, types(pin: pin),
    ]
    .joined(separator: "\n")
  }

  private static let server = """
    # Configuration of the token server. It is read when the server starts; an unknown setting is an error.

    listen = "127.0.0.1"
    port = 8443
    # The address of this server for tokens and portals, as https://HOST[:PORT]; by default the address and port above.
    # issuer = "https://auth.example.org"
    # access_log = false
    # Loopback, link-local and private addresses that callbacks may use, as ADDRESS or ADDRESS/BITS.
    # callback_private_addresses = []
    # Load balancers whose connections begin with a header of the PROXY protocol, version 2, as ADDRESS or ADDRESS/BITS.
    # proxy_protocol_from = []

    [tls]
    certificate = "server.pem"
    key = "server.key"

    """

  private static func database(_ url: String?) -> String {
    // By scalars: with a combining mark, a quotation mark is another `Character`, but not for TOML.
    func escaped(_ text: String) -> String {
      text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined()
    }
    let setting =
      url.map { "[database]\nurl = \"\(escaped($0))\"" }
      ?? "# [database]\n# url = \"postgresql://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full&sslrootcert=FILE\""
    return """
      # By default the database is the file token-server.db. A PostgreSQL database can be shared by several servers.
      \(setting)
      # connections = 8

      """
  }

  private static let mobileAuthentication = """
    [mobile_authentication]
    enabled = true
    enrollment = true
    # How many devices of one user may be enrolled for push: "single" (a second is refused), "override" (a second
    # takes over), "multiple" (portals must use API version 4).
    push_enrollment_mode = "multiple"
    # One OpenPGP key of the server per enrollment instead of one for all.
    # unique_server_keys = false
    # max_message_length = 155
    # Whether callback_uri must be one of the [[callback]] entries.
    # callback_allow_list = false
    # What portals read as the devices' platform.
    # portal_platform_alias = "linux"
    # result_retention_hours = 24
    # minimum_software_version = "0.0.0"
    # How long requests for a user are on hold after "not me", in seconds; 0 disables the hold.
    # not_me_hold_seconds = 300

    """

  private static let limits = """
    # [limits]
    # device_requests_per_second = 200
    # open_requests_per_device = 100
    # devices_per_fleet_token = 100000
    # At the same time, event streams among them; and from one address, without authenticated streams (IPv6: from one
    # /64, and eight times as many from one /48).
    # connections = 20000
    # connections_per_source = 256
    # Seconds for one request, from accept to the end of the response, and for a connection between requests, of others
    # and of devices.
    # request_seconds = 30
    # idle_seconds = 60
    # device_idle_seconds = 900

    """

  private static func application(pin: Bool) -> String {
    """
    [application]
    # id = "approval-token"
    # name = "Approval Token"
    # Whether activating a user includes choosing a PIN. Without one, a stolen token can approve everything.
    pin = \(pin)
    # Wrong PINs after which the user is deregistered, 1 to 10.
    # max_pin_attempts = 3
    # Whether users may register fingerprints, and custom authenticators, in addition to the PIN.
    # biometric = false
    # custom_authenticators = false

    # [application.pin_policy]
    # length = 5
    # The longest run of one digit; any, if absent.
    # max_repeats = 2
    # Whether all digits may have the same distance, as in 12345 or 97531.
    # sequences_allowed = false
    # block_list = []

    """
  }

  private static let mqtt = """
    # An MQTT broker (TLS, version 5) for hints to tokens that request it.
    # [mqtt]
    # broker = "broker.example.org:8883"
    # A PEM file, for a broker whose certificate is not from one of the system's authorities.
    # authorities = "broker-ca.pem"
    # username = "token-server"
    # password = "..."
    # topic_prefix = "approval-token"

    """

  private static let operations = """
    # Health checks (/healthz, /readyz) and metrics (/metrics) over HTTP without TLS: docs/operations.md.
    # [operations]
    # listen = "127.0.0.1"
    # port = 9464
    # Seconds from SIGTERM, when /readyz begins to fail, until the server ends; 0 without PostgreSQL.
    # drain_seconds = 10

    """

  private static let authenticators = """
    # What users may register in addition to the PIN. A custom one has a folder with the executables "register" and
    # "authenticate", or signs with P-256: signature = "security_key" (FIDO2) or "badge" (PIV).
    # [[authenticator]]
    # id = "fingerprint"
    # name = "Fingerprint"
    # kind = "biometric"
    # [[authenticator]]
    # id = "badge"
    # name = "Badge"
    # kind = "custom"
    # scripts = "authenticators/badge"
    # time_limit_seconds = 10
    # max_failures = 3
    # user = "nobody"

    """

  private static let callbacks = """
    # [[callback]]
    # url = "https://portal.example.org/finished"
    # username = "token-server"
    # password = "..."

    """

  private static func types(pin: Bool) -> String {
    let payment =
      pin ? "method = \"push_with_pin\"" : "method = \"push\"\n# Needs application.pin:\n# method = \"push_with_pin\""
    return """
      [[type]]
      name = "login"
      method = "push"
      # Seconds.
      request_expires_in = 60
      # callback_on_expiry = false
      # A newer request of this type replaces the user's older ones.
      # supersede = false
      # A device that is not connected makes the transaction fail at once.
      # delivery_required = false
      # A device without a display cannot be asked.
      # requires_display = false
      # The user types the digits that the portal names in read_back, such as the amount, on the keypad.
      # read_back = "digits"
      [type.messages]
      en = "Do you want to log in?"

      [[type]]
      name = "payment"
      \(payment)
      request_expires_in = 120

      """
  }
}
