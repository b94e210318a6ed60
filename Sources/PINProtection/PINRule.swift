/// What a new PIN must not be. Names and numbers are those that enrolling apps have always shown.
public enum PINRule: UInt8, Sendable, CaseIterable {
  /// It is one that everybody tries first.
  case blockListed = 1
  /// All digits stand at one constant distance other than zero: 12345, 13579, 97531.
  case sequence
  /// One digit is repeated too often in a row.
  case repeats
  /// It has not exactly as many digits as wanted.
  case length

  /// 1 to 4: what the panel blinks.
  public var ordinal: Int { Int(rawValue) }
  /// 9011 to 9014.
  public var number: Int { 9010 + ordinal }
}
